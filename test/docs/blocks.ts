/**
 * Command blocks of a Markdown page, in order, with what comments above them say to the test. A page reads as if the comments were not there:
 *
 *     <!-- test: run COMMAND -->    runs before the block that follows; what a reader has done already
 *     <!-- test: file PATH -->      the block is written to that file instead of being run
 *     <!-- test: output -->         the block is what the commands before it printed, or a part of it
 *     <!-- test: exit 1 -->         the block ends with this code
 *     <!-- test: needs docker -->   runs where there is a Docker daemon
 *     <!-- test: slow -->           runs with RLCLI_TEST_ALL=1
 *     <!-- test: skip WHY -->       cannot run here: GPUs, a name that stands for the reader's own, a listing of flags
 *
 * Blocks of `sh` are scripts; in blocks of `console`, lines after `$ ` are commands and the others what they print.
 */

export interface Block {
  /** Of the fence, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  readonly setup: readonly string[];
  readonly file?: string;
  readonly isOutput: boolean;
  readonly exit: number;
  readonly needs?: string;
  readonly isSlow: boolean;
  readonly skip?: string;
}

const COMMENT = /^<!-- test: (\w+) ?(.*?) ?-->$/;
const FENCE = /^( {0,3})(`{3,})(\S*)/;

export function blocksOf(page: string): readonly Block[] {
  const lines = page.split("\n");
  const blocks: Block[] = [];
  let marks: (readonly [word: string, rest: string])[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, word, rest = ""] = COMMENT.exec(lines[at] as string) ?? [];
    const [, , fence, language = ""] = FENCE.exec(lines[at] as string) ?? [];
    if (word !== undefined) marks.push([word, rest]);
    if (fence === undefined) continue;
    const line = at + 1;
    const text: string[] = [];
    for (at += 1; at < lines.length && !lines[at]?.trim().startsWith(fence); at++) text.push(lines[at] as string);
    blocks.push(blockOf(line, language, `${text.join("\n")}\n`, marks));
    marks = [];
  }
  return blocks;
}

const WORDS = ["run", "file", "output", "exit", "needs", "slow", "skip"];

function blockOf(
  line: number,
  language: string,
  text: string,
  marks: readonly (readonly [word: string, rest: string])[],
): Block {
  const stray = marks.find(([word]) => !WORDS.includes(word));
  if (stray) throw new Error(`line ${line}: there is no comment \`test: ${stray[0]}\``);
  const value = (word: string) => marks.find(([name]) => name === word)?.[1];
  const [file, needs, skip] = [value("file"), value("needs"), value("skip")];
  return {
    line,
    language,
    text,
    setup: marks.filter(([word]) => word === "run").map(([, command]) => command),
    isOutput: value("output") !== undefined,
    exit: Number(value("exit") ?? 0),
    isSlow: value("slow") !== undefined,
    ...(file === undefined ? {} : { file }),
    ...(needs === undefined ? {} : { needs }),
    ...(skip === undefined ? {} : { skip }),
  };
}

/** Whether something happens at it. */
export const isTested = ({ language, file, isOutput }: Block): boolean =>
  file !== undefined || isOutput || language === "sh" || language === "console";

/** Commands of a `console` block, each with what it prints. */
export function consoleSteps(text: string): readonly { readonly command: string; readonly output: string }[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const end = step.indexOf("\n");
      return { command: step.slice(0, end), output: step.slice(end + 1).trim() };
    });
}

/** Times, rates, addresses and digests of files differ from run to run; `…` stands for anything in a line, alone for any lines. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\d+(\\\.\d+)? (s|min|h)\b/g, "\\d+(?:\\.\\d+)? (?:s|min|h)"],
  [/[\d.\\]+k? tokens\/s/g, "[\\d.]+k? tokens/s"],
  [/127\\\.0\\\.0\\\.1:\d+/g, "127\\.0\\.0\\.1:\\d+"],
];

/** Finds a page's text in what was printed. Ends of lines and blank lines around do not count. */
export function matcherOf(expected: string): RegExp {
  const lines = expected
    .trim()
    .split("\n")
    .map((line) => line.trimEnd());
  const pattern = lines
    .map((line) => {
      if (line.trim() === "…") return "(?:.*\\n)*?";
      const escaped = line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", ".*?");
      return `${VARYING.reduce((text, [from, to]) => text.replace(from, () => to), escaped)}[ \\t]*\\n`;
    })
    .join("");
  return new RegExp(pattern, "m");
}
