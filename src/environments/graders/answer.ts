/** What graders outside this process answer: checked once, here. */
import { fail } from "../../diagnostic.ts";
import { type Grade, isReward, LARGEST_REWARD } from "../grader.ts";

/** A number, or `{ reward, metrics?, note? }`. Throws RL7103 for anything else. `who` names the grader in messages. */
export function readGrade(value: unknown, who: string): Grade {
  if (typeof value === "number") return readGrade({ reward: value }, who);
  if (typeof value !== "object" || value === null) return refuse(who, value);
  const { reward, metrics = {}, note } = value as Record<string, unknown>;
  if (!isReward(reward)) return refuse(who, value);
  if (typeof metrics !== "object" || metrics === null) return refuse(who, value);
  const numbers: Record<string, number> = {};
  for (const [name, metric] of Object.entries(metrics)) {
    if (typeof metric === "boolean") numbers[name] = Number(metric);
    else if (typeof metric === "number" && Number.isFinite(metric)) numbers[name] = metric;
    else return refuse(who, value);
  }
  return { reward, metrics: numbers, ...(typeof note === "string" ? { note } : {}) };
}

const LONGEST_SHOWN = 200;

function refuse(who: string, value: unknown): never {
  const shown = JSON.stringify(value) ?? String(value);
  return fail(
    "RL7103",
    `${who} answered ${shown.slice(0, LONGEST_SHOWN)}, which is no grade. A grade is a number of at most ${LARGEST_REWARD} in size, or an object with \`reward\` and perhaps \`metrics\` (numbers by name) and \`note\`.`,
  );
}
