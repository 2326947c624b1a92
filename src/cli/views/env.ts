/** Tasks, trials and leftovers as text. */
import type { Rewards } from "../../environments/harbor/reward.ts";
import type { FoundContainer, FoundImage } from "../../environments/sandbox/reap.ts";
import type { CheckedTask, Tried } from "../commands/env.ts";
import type { Style } from "./style.ts";
import { printable } from "./text.ts";

export interface ShownTask {
  readonly name: string;
  readonly steps: number;
  readonly cpus: number | null;
  readonly memoryMb: number | null;
  readonly network: string;
  readonly agentSeconds: number | null;
  readonly description: string;
}

export function taskLines(tasks: readonly ShownTask[], style: Style): string {
  const width = Math.max(...tasks.map(({ name }) => name.length));
  const lines = tasks.map(({ name, steps, cpus, memoryMb, network, agentSeconds, description }) => {
    const facts = [
      steps > 1 ? `${steps} steps` : undefined,
      cpus === null ? undefined : `${cpus} CPU`,
      memoryMb === null ? undefined : `${memoryMb} MiB`,
      network === "public" ? undefined : "no network",
      agentSeconds === null ? undefined : `${agentSeconds} s`,
    ].filter((fact) => fact !== undefined);
    return `${style.bold(name.padEnd(width))}  ${style.dim(facts.join(", "))}${description === "" ? "" : `  ${printable(description)}`}`;
  });
  return `${lines.join("\n")}\n`;
}

export function checkLine({ name, oracle, nop, passed }: CheckedTask, style: Style): string {
  const mark = passed ? style.green("ok    ") : style.red("failed");
  return `${mark}  ${name}  solution ${triedWords(oracle)}, nothing ${triedWords(nop)}\n`;
}

const triedWords = ({ reward, fault, memoryKills }: Tried): string =>
  `${fault ? fault.code : reward}${memoryKills ? " (out of memory)" : ""}`;

export const memoryWords = (kills: number): string =>
  `${kills} ${kills === 1 ? "process was" : "processes were"} killed: the container's memory was used up (\`memory_mb\` of the task, or \`sandbox.memory\`).`;

export function trialLines(rewards: Rewards): string {
  return Object.entries(rewards)
    .map(([key, value]) => `${key} ${value}\n`)
    .join("");
}

export interface ShownLeftovers {
  readonly removed: readonly FoundContainer[];
  readonly left: readonly FoundContainer[];
  readonly images: readonly FoundImage[];
  readonly isDryRun: boolean;
}

export function gcLines({ removed, left, images, isDryRun }: ShownLeftovers, style: Style): string {
  const done = isDryRun ? "would remove" : "removed";
  const lines = [
    ...removed.map((one) => `${done} ${containerWords(one)}`),
    ...images.map(({ names, id, bytes }) => `${done} image ${names[0] ?? id} (${(bytes / 1e6).toFixed(0)} MB)`),
    ...left.map((one) => style.dim(`left ${containerWords(one)}: ${whyLeft(one)}`)),
  ];
  return `${lines.length === 0 ? "Nothing is left behind." : lines.join("\n")}\n`;
}

const containerWords = ({ name, project, run, created }: FoundContainer): string =>
  `container ${name} of ${project === "" ? run : `${project}, ${run}`}, made ${created}`;

function whyLeft({ verdict, isKept }: FoundContainer): string {
  if (isKept) return "kept to be looked at; --kept removes it";
  return verdict === "unknown" ? "of another machine; --all removes it" : "its process is at work";
}
