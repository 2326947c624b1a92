/** A state record for people. */
import { shortDigest } from "../../digest.ts";
import type { StateRecord } from "../../state-record.ts";
import { renderValue } from "./plan.ts";
import type { Style } from "./style.ts";

export function renderRecord(record: StateRecord, style: Style): string {
  const rows: [string, string][] = [
    ["status", record.tainted ? `${record.status}, tainted` : record.status],
    [record.address.startsWith("run.") ? "generation" : "hash", `${shortDigest(record.hash)}/${record.incarnation}`],
    ...Object.entries(record.results).map(([key, value]): [string, string] => [key, renderValue(value)]),
    ...Object.entries(record.attributes).map(([key, value]): [string, string] => [key, renderValue(value)]),
  ];
  const width = Math.max(...rows.map(([key]) => key.length));
  const lines = rows.map(([key, value]) => `  ${key.padEnd(width)}  ${value}`);
  return `${style.bold(record.address)}\n${lines.join("\n")}\n`;
}
