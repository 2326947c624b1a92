/** Changes single values of a template's text and leaves every other byte, comments above all, as it was. */
import { isMap, isScalar, type Node, parseDocument, visit } from "yaml";

/** Where a new spec is to differ from its template. */
export interface SpecChoices {
  readonly project: string;
  /** In place of the template's server block. */
  readonly server?: Readonly<Record<string, string | number>>;
  /** Which log the named dataset imports. */
  readonly logs?: { readonly dataset: string; readonly from: readonly string[]; readonly format: string };
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The template with the choices in it. */
export function chosenSpec(text: string, { project, server, logs }: SpecChoices): string {
  const edits = [valueEdit(text, ["project"], flow(project))];
  if (server !== undefined) edits.push(blockEdit(text, "server", `server: ${flow(server)}\n`));
  if (logs !== undefined) {
    const { dataset, from, format } = logs;
    edits.push(valueEdit(text, ["datasets", dataset, "import", "from"], flow(from.length === 1 ? from[0] : from)));
    edits.push(valueEdit(text, ["datasets", dataset, "import", "format"], flow(format)));
  }
  return edits
    .sort((a, b) => b.start - a.start)
    .reduce((done, { start, end, text: put }) => done.slice(0, start) + put + done.slice(end), text);
}

function rangeOf(node: unknown, path: string): readonly [number, number] {
  const range = (node as Node | undefined)?.range;
  if (!range) throw new Error(`the template has no ${path}`);
  return [range[0], range[1]];
}

function valueEdit(text: string, path: readonly string[], put: string): Edit {
  const [start, end] = rangeOf(parseDocument(text).getIn(path, true), path.join("."));
  return { start, end, text: put };
}

/** A key of the top with all that stands below it, its comments included. */
function blockEdit(text: string, key: string, put: string): Edit {
  const { contents } = parseDocument(text);
  const pair = isMap(contents)
    ? contents.items.find((item) => isScalar(item.key) && item.key.value === key)
    : undefined;
  const [start] = rangeOf(pair?.key, key);
  let end = isMap(pair?.value) && pair.value.flow ? rangeOf(pair.value, key)[1] : start;
  // Of a block map, which itself ends wherever the next key begins, the last scalar.
  visit(pair?.value as Node, {
    Scalar: (_, node) => {
      end = Math.max(end, rangeOf(node, key)[1]);
    },
  });
  const line = text.indexOf("\n", end);
  return { start, end: line < 0 ? text.length : line + 1, text: put };
}

/** A value in flow style, quoted where YAML would read something else. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{ ${Object.entries(value)
      .map(([key, inner]) => `${key}: ${flow(inner)}`)
      .join(", ")} }`;
  if (typeof value !== "string") return String(value);
  const isPlain =
    /^[A-Za-z./][\w./@+-]*(:[\w./@+-]+)*$/.test(value) && !/^(true|false|null|yes|no|on|off)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}
