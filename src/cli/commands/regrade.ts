/** `rlcli regrade`: saved rollouts under the grader that the spec has now. Needs no server, samples nothing, changes no record. */
import { closeSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Address } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import type { EnvironmentOrder } from "../../environment-order.ts";
import { openEnvironment } from "../../environments/environment.ts";
import { replaceable, temporaryName, writeFully } from "../../files.ts";
import { environmentOrder } from "../../kinds/environment.ts";
import { differenceOf, type Regraded, type RegradeSummary, regradeAll, summarise } from "../../training/rl/regrade.ts";
import { isLost, ROLLOUTS_VERSION, toLines } from "../../training/rl/rollout.ts";
import { readRollouts, stepsWithRollouts } from "../../training/rl/rollout-files.ts";
import { mostFrequent } from "../../training/rl/sampling.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { interruptible } from "../interruptible.ts";
import type { SpecOptions } from "../options.ts";
import { openRun, type RunPlace } from "../run-record.ts";
import { renderRegrade } from "../views/regrade.ts";
import { orderOf, rangesOf } from "./rollouts.ts";

export interface RegradeFlags extends Partial<SpecOptions> {
  readonly step?: number;
  /** `10..20`. */
  readonly steps?: string;
  readonly output?: string;
}

export const REGRADE_JSON_VERSION = 1;

/** Differences that are shown one by one. */
const MOST_DIFFERENCES = 5;

export interface StepSummary extends RegradeSummary {
  readonly step: number;
}

export interface Difference {
  readonly step: number;
  readonly task: number;
  readonly group: number;
  readonly index: number;
  readonly before: number;
  readonly after: number;
  readonly note?: string;
}

export async function regrade(context: CommandContext, name: string, flags: RegradeFlags): Promise<ExitCode> {
  const place = await openRun(context, name, flags);
  const order = orderOf(place.folder, place.address);
  const environment = environmentNow(place, order.rl?.environment as EnvironmentOrder);
  const steps = chosenSteps(place, flags);
  const { cacheFolder, env } = place.open.context;
  return interruptible(context, async (signal) => {
    const opened = await openEnvironment(environment, { folder: environment.folder, cacheFolder, env });
    const out = flags.output === undefined ? undefined : new WholeFile(resolve(context.cwd, flags.output));
    const report = new Report();
    try {
      for (const step of steps) {
        signal.throwIfAborted();
        const regraded = await regradeAll(opened, readRollouts(place.folder, step), signal);
        report.add(step, regraded);
        out?.add(regraded.map((one) => lineOf(step, one)));
      }
      out?.finish();
    } finally {
      out?.close();
      await opened.close();
    }
    show(context, place.address, report, flags.output);
    return EXIT.done;
  });
}

/** The environment that the spec gives the run now, on the tasks that the run was asked. */
function environmentNow({ node, open, address }: RunPlace, trained: EnvironmentOrder): EnvironmentOrder {
  const to = node?.references.find(({ path }) => path === "environment")?.to;
  const block = to && open.spec?.nodes.get(to);
  if (trained.harbor)
    fail(
      "RL9009",
      `${address} was graded by tests in sandboxes, which are gone: there is nothing that could judge its answers again.`,
    );
  if (!block) return fail("RL9009", `${address} is not in the spec any more, so it has no grader now.`);
  return { ...environmentOrder(block, trained.tasks.digest, open.context), tasks: trained.tasks };
}

function chosenSteps({ folder, address }: RunPlace, { step, steps }: RegradeFlags): readonly number[] {
  const there = stepsWithRollouts(folder);
  const [from, to] = step !== undefined ? [step, step] : rangeOf(steps);
  const chosen = there.filter((candidate) => candidate >= from && candidate <= to);
  if (chosen.length > 0) return chosen;
  const has = there.length > 0 ? ` It has ${rangesOf(there)}.` : "";
  return fail("RL9009", `${address} has no rollouts of such a step.${has}`);
}

function rangeOf(text: string | undefined): readonly [number, number] {
  if (text === undefined) return [1, Number.POSITIVE_INFINITY];
  const found = /^(\d*)\.\.(\d*)$/.exec(text);
  if (!found || text === "..") fail("RL9003", `--steps takes a range as in 10..20, 10.. or ..20, not \`${text}\`.`);
  const [, from, to] = found;
  return [from ? Number(from) : 1, to ? Number(to) : Number.POSITIVE_INFINITY];
}

/** A rollout as a run keeps it, with its step and what it was worth before. */
function lineOf(step: number, { before, after }: Regraded): object {
  return { step, ...toLines([after])[0], ...(isLost(before) ? {} : { before: before.reward }) };
}

/** Adds up steps, and remembers the largest differences only. */
class Report {
  readonly steps: StepSummary[] = [];
  differences: readonly Difference[] = [];
  #failed: Parameters<typeof mostFrequent>[0] = [];

  add(step: number, regraded: readonly Regraded[]): void {
    this.steps.push({ step, ...summarise(regraded) });
    const found = regraded.flatMap((one): Difference[] => {
      const { before, after } = one;
      if (isLost(before) || isLost(after) || differenceOf(one) === 0) return [];
      const { task, group, index, note } = after;
      const place = { step, task, group, index, before: before.reward, after: after.reward };
      return [{ ...place, ...(note === undefined ? {} : { note }) }];
    });
    const size = ({ before, after }: Difference) => Math.abs(after - before);
    this.differences = [...this.differences, ...found].sort((a, b) => size(b) - size(a)).slice(0, MOST_DIFFERENCES);
    this.#failed = [
      ...this.#failed,
      ...regraded.flatMap(({ before, after }) => (isLost(after) && !isLost(before) ? [after] : [])),
    ];
  }

  /** Why most of those were not judged that were before. */
  get fault(): string | undefined {
    return this.#failed.length > 0 ? mostFrequent(this.#failed) : undefined;
  }
}

function show(context: CommandContext, address: Address, report: Report, output: string | undefined): void {
  const { steps, differences, fault } = report;
  if (context.isJson) {
    const result = { formatVersion: REGRADE_JSON_VERSION, run: address, steps, differences };
    context.out(`${JSON.stringify({ ...result, ...(fault === undefined ? {} : { fault }) })}\n`);
    return;
  }
  context.out(renderRegrade({ address, steps, differences, fault }, context));
  if (output !== undefined) context.out(`Written to ${output}; the record of ${address} stays as it was.\n`);
}

/** JSON lines that appear under their name once all are there. */
class WholeFile {
  readonly #path: string;
  readonly #temporary: string;
  #fd: number | undefined;

  constructor(path: string) {
    this.#path = replaceable(path) ?? path;
    this.#temporary = temporaryName(this.#path);
    mkdirSync(dirname(this.#path), { recursive: true });
    this.#fd = openSync(this.#temporary, "wx");
    this.add([{ formatVersion: ROLLOUTS_VERSION }]);
  }

  add(lines: readonly object[]): void {
    if (this.#fd === undefined) throw new RangeError("the file is closed");
    writeFully(this.#fd, Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
  }

  finish(): void {
    this.#shut();
    renameSync(this.#temporary, this.#path);
  }

  /** Leaves nothing of a file that was not finished. */
  close(): void {
    this.#shut();
    rmSync(this.#temporary, { force: true });
  }

  #shut(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}
