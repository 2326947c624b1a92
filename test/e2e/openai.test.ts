/** `rlcli serve openai` as a user has it: a run, its steps, a deployment that moves, a server that restarts. */
import { once } from "node:events";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rows, SPEC, TestProject } from "./project.ts";

const DEPLOYMENT = "deployments:\n  live: { checkpoint: count@2 }\n";

let project: TestProject;
let client: OpenAI;
let child: ReturnType<TestProject["start"]>;
let first: { url: string; models: string[] };

beforeAll(async () => {
  project = new TestProject({ "rlcli.yaml": SPEC + DEPLOYMENT, "numbers.jsonl": rows() });
  project.ok("apply", "-y");
  child = project.start("serve", "openai", "--port", "0", "--json");
  const [line] = (await once(child.stdout!, "data")) as [Buffer];
  first = JSON.parse(line.toString());
  client = new OpenAI({ baseURL: first.url, apiKey: "none", maxRetries: 0 });
});
afterAll(async () => {
  child.kill("SIGTERM");
  const [code] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  expect(code).toBe(0);
  await project.close();
});

const QUESTION = "three";
const greedy = async (model: string) => {
  const messages = [{ role: "user" as const, content: QUESTION }];
  const completion = await client.chat.completions.create({ model, messages, temperature: 0, max_tokens: 12 });
  return { text: completion.choices[0]!.message.content, fingerprint: completion.system_fingerprint };
};
const sampled = (name: string) =>
  JSON.parse(project.ok("sample", name, "--prompt", QUESTION, "--temperature", "0", "--max-tokens", "12", "--json"))
    .text as string;

test("lists what there is", () => {
  expect(first.models).toEqual(["count", "deployment.live", "builtin:tiny"]);
});

test.each(["count", "count@2", "count@best", "deployment.live", "base"])(
  "a greedy answer of %s is that of `rlcli sample --temperature 0`, streamed or not",
  async (name) => {
    if (name === "count@best") {
      // Nothing was measured of this run, so it has no best step.
      await expect(greedy(name)).rejects.toMatchObject({ status: 404, code: "model_not_found" });
      return;
    }
    const { text } = await greedy(name);
    expect(text).toBe(sampled(name));
    const messages = [{ role: "user" as const, content: QUESTION }];
    const stream = client.chat.completions.stream({ model: name, messages, temperature: 0, max_tokens: 12 });
    expect((await stream.finalContent()) ?? "").toBe(text);
  },
);

test("a deployment that moves is followed without a restart", async () => {
  const before = await greedy("deployment.live");
  expect(before.fingerprint).toBe((await greedy("count@2")).fingerprint);
  project.edit("rlcli.yaml", "count@2", "count@6");
  project.ok("apply", "-y");
  const after = await greedy("deployment.live");
  expect(after.fingerprint).not.toBe(before.fingerprint);
  expect(after).toEqual(await greedy("count"));
});

test("a server that was stopped is started again by the next request", async () => {
  const before = await greedy("count");
  project.ok("serve", "stop", "--force");
  expect(await greedy("count")).toEqual(before);
});

test("a name that is nearly right is suggested", async () => {
  await expect(greedy("cuont")).rejects.toThrow("Did you mean `run.count`?");
  await expect(greedy("live")).rejects.toThrow("Did you mean `deployment.live`?");
});
