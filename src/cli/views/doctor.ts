/** The findings of `rlcli doctor` as a person reads them. */
import type { BackendVerdict, Check } from "../../servers/verdicts.ts";
import type { Style } from "./style.ts";

export function renderDoctor(checks: readonly Check[], verdicts: readonly BackendVerdict[], style: Style): string {
  const marks = { ok: style.green("✓"), warning: style.yellow("!"), missing: style.red("✗") };
  const width = Math.max(
    ...[...checks.map(({ name }) => name), ...verdicts.map(({ backend }) => backend)].map((name) => name.length),
  );
  const found = checks.map(({ name, status, detail }) => `${marks[status]} ${name.padEnd(width)}  ${detail}\n`);
  const can = verdicts.map(({ backend, isUsable, lacks }) => {
    const mark = isUsable ? (lacks.length === 0 ? marks.ok : marks.warning) : marks.missing;
    const words = isUsable
      ? lacks.length === 0
        ? "ready"
        : `ready, without ${lacks.join(", ")}`
      : `lacks ${lacks.join(", ")}`;
    return `${mark} ${backend.padEnd(width)}  ${words}\n`;
  });
  return `${style.bold("This machine")}\n${found.join("")}\n${style.bold("What it can run")}\n${can.join("")}`;
}
