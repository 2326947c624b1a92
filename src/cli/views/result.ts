/** How an apply ended, in one line and what to do next. */
import type { ApplyResult } from "../../engine/apply.ts";
import type { Style } from "./style.ts";

export interface ResultView {
  readonly wasStopped: boolean;
  /** A smoke test leaves nothing to go on with. */
  readonly isSmoke: boolean;
  readonly style: Style;
}

export function renderResult({ counts }: ApplyResult, { wasStopped, isSmoke, style }: ResultView): string {
  const parts: string[] = [];
  if (counts.done > 0) parts.push(`${counts.done} done`);
  if (counts.detached > 0) parts.push(`${counts.detached} running in the background`);
  if (counts.waiting > 0) parts.push(`${counts.waiting} waiting for it`);
  if (counts.interrupted > 0) parts.push(`${counts.interrupted} interrupted`);
  if (counts.failed > 0) parts.push(`${counts.failed} failed`);
  if (counts.skipped > 0) parts.push(`${counts.skipped} not started`);
  const isWhole = counts.interrupted + counts.failed + counts.skipped === 0;
  const head = isWhole
    ? style.green("Apply complete:")
    : style.red(wasStopped ? "Apply stopped:" : "Apply incomplete:");
  const next = isWhole
    ? counts.detached > 0
      ? ` \`rlcli status\` shows how it goes${counts.waiting > 0 ? "; apply again when it has ended" : ""}.`
      : ""
    : isSmoke
      ? " Only this try has failed: the project itself was not touched."
      : " Nothing that was saved is lost; `rlcli plan` shows what is left, `rlcli apply` goes on.";
  return `${head} ${parts.join(", ")}.${next}\n`;
}
