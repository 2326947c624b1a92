// The comment on a pull request, the summary of a job, and outputs for later steps.
import { appendFileSync } from "node:fs";
import { Failure } from "./run.mjs";

const PAGE = 100;

/** By which the one comment of a project is found again. */
const markOf = ({ name }) => `<!-- rlcli plan of ${encodeURIComponent(name)} -->`;

async function call({ api, token }, method, path, body) {
  const response = await fetch(`${api}${path}`, {
    method,
    headers: {
      accept: "application/vnd.github+json",
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "x-github-api-version": "2022-11-28",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok)
    throw new Failure(
      `GitHub answers ${response.status} to ${method} ${path}: ${(await response.text()).slice(0, 300)}`,
    );
  return response.json();
}

async function findComment(settings, issue) {
  const mark = markOf(settings);
  for (let page = 1; ; page += 1) {
    const comments = await call(settings, "GET", `${issue}/comments?per_page=${PAGE}&page=${page}`);
    const found = comments.find(({ body }) => body?.startsWith(mark));
    if (found || comments.length < PAGE) return found;
  }
}

/** Without a pull request, or without the right to write, the plan stands in the job's summary alone. */
export async function upsertComment(settings, text) {
  const { repository, pullRequest } = settings;
  if (pullRequest === undefined) return;
  const body = `${markOf(settings)}\n${text}`;
  const issue = `/repos/${repository}/issues/${pullRequest}`;
  try {
    const found = await findComment(settings, issue);
    if (found) await call(settings, "PATCH", `/repos/${repository}/issues/comments/${found.id}`, { body });
    else await call(settings, "POST", `${issue}/comments`, { body });
  } catch (error) {
    const reason = error instanceof Failure ? error.message : String(error);
    console.log(
      `::warning title=rlcli::The plan could not be written into the pull request. ${reason.replaceAll("\n", " ")}`,
    );
  }
}

export function summarise({ summaryFile }, text) {
  if (summaryFile) appendFileSync(summaryFile, `${text}\n`);
}

export function setOutput({ outputFile }, name, value) {
  if (outputFile) appendFileSync(outputFile, `${name}=${value}\n`);
}
