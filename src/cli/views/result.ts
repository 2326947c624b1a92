/** How an apply or a destroy ended, in one line and what to do next. */
import type { ApplyResult } from "../../engine/apply.ts";
import type { Style } from "./style.ts";

export interface ResultView {
  /** By Ctrl-C. */
  readonly wasStopped: boolean;
  /** A smoke test leaves nothing to go on with. */
  readonly isSmoke: boolean;
  /** The end of everything was planned, so an apply would bring back what is gone. */
  readonly isDestroy: boolean;
  readonly style: Style;
}

export function renderResult({ counts }: ApplyResult, view: ResultView): string {
  const { wasStopped, isSmoke, isDestroy, style } = view;
  const verb = isDestroy ? "Destroy" : "Apply";
  const parts: string[] = [];
  if (counts.done > 0) parts.push(`${counts.done} done`);
  if (counts.detached > 0) parts.push(`${counts.detached} running in the background`);
  if (counts.waiting > 0) parts.push(`${counts.waiting} waiting for it`);
  if (counts.interrupted > 0) parts.push(`${counts.interrupted} interrupted`);
  if (counts.failed > 0) parts.push(`${counts.failed} failed`);
  if (counts.skipped > 0) parts.push(`${counts.skipped} not started`);
  const isWhole = counts.interrupted + counts.failed + counts.skipped === 0;
  const head = isWhole
    ? style.green(`${verb} complete:`)
    : style.red(`${verb} ${wasStopped ? "stopped" : "incomplete"}:`);
  const next = isWhole
    ? counts.detached > 0
      ? ` \`rlcli status\` shows how it goes${counts.waiting > 0 ? "; apply again when it has ended" : ""}.`
      : ""
    : isSmoke
      ? " Only this try has failed: the project itself was not touched."
      : isDestroy
        ? " `rlcli plan --destroy` shows what is left, `rlcli destroy` goes on."
        : " Nothing that was saved is lost; `rlcli plan` shows what is left, `rlcli apply` goes on.";
  return `${head} ${parts.join(", ")}.${next}\n`;
}
