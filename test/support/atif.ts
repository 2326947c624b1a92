/** Whether a document is one of the Agent Trajectory Interchange Format: its schema, and the rules that a schema cannot say. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";

const schema = new URL("../fixtures/atif/trajectory.schema.json", import.meta.url);
const validate = new Ajv2020({ allErrors: true, allowUnionTypes: true }).compile(
  JSON.parse(readFileSync(schema, "utf8")),
);

interface Step {
  readonly step_id: number;
  readonly tool_calls?: readonly { readonly tool_call_id: string }[];
  readonly observation?: { readonly results: readonly { readonly source_call_id?: string }[] };
}

/** One sentence each; empty for a good document. */
export function faultsOf(document: unknown): readonly string[] {
  if (!validate(document))
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  return (document as { readonly steps: readonly Step[] }).steps.flatMap((step, at) => {
    const calls = new Set(step.tool_calls?.map((call) => call.tool_call_id));
    const results = step.observation?.results ?? [];
    const strangers = results.flatMap(({ source_call_id: id }) => (id === undefined || calls.has(id) ? [] : [id]));
    return [
      ...(step.step_id === at + 1 ? [] : [`steps[${at}].step_id is ${step.step_id}`]),
      ...strangers.map((id) => `steps[${at}] has a result of the call ${id}, which it did not make`),
    ];
  });
}
