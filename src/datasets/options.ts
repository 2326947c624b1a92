/** Everything that decides which rows an import gives. Defaults are left out, so that a new option changes no identity. */
import type { FormatOptions, RolePrefix } from "./format.ts";
import type { RowRules } from "./row.ts";

export interface RedactOptions {
  /** Names and words to redact wherever they stand as whole words, in any case. */
  readonly names?: readonly string[];
  /** Own patterns, as regular expressions. */
  readonly patterns?: readonly string[];
}

export type Dedupe = "none" | "exact" | "prefix" | "near";

/** Field names are those of the spec's `import` block. */
export interface ImportOptions extends RowRules {
  /** At most this many rows, in the order of the sources. */
  readonly limit?: number;
  readonly keep_tools?: boolean;
  readonly keep_thinking?: boolean;
  /** `ROLE=PREFIX`: turns whose text begins with the prefix have the role. */
  readonly role_prefix?: readonly string[];
  readonly choices?: "all";
  /** Conditions on the log line: every one must hold. */
  readonly where?: readonly string[];
  readonly min_score?: number;
  /** Rows carry their score as weight of their loss. */
  readonly weight_by?: "score";
  /** Longer conversations are left out, counted with the chat template of `tokenizer`. */
  readonly max_tokens?: number;
  /** Digest of the tokenizer and template that `max_tokens` counts with. */
  readonly tokenizer?: string;
  readonly redact?: RedactOptions;
  /**
   * `exact`: equal conversations once. `prefix`: also without those that a longer one repeats from its start. `near`: also without
   * those that are nearly equal to an earlier one. Absent: what the format has by default.
   */
  readonly dedupe?: Dedupe;
  /** Similarity from which conversations are nearly equal (Jaccard, of their word 5-grams). */
  readonly near_threshold?: number;
  /** So many rows, chosen by a hash of their content and `seed`; their order stays. */
  readonly sample?: number;
  readonly seed?: number;
  /** One side of a split by a hash of each conversation's beginning. */
  readonly split?: "train" | "test";
  /** Share of conversations on the test side. */
  readonly test_share?: number;
  /** Longer lines are left out. */
  readonly max_line_bytes?: number;
}

export const DEFAULT_LINE_BYTES = 16 * 2 ** 20;
export const DEFAULT_TEST_SHARE = 0.1;
/** Similarity from which Lee et al. (2022), "Deduplicating Training Data Makes Language Models Better", drop a document. */
export const DEFAULT_NEAR_THRESHOLD = 0.8;

/** What a thread needs to know to turn lines into rows. Plain data. */
export interface ReadPlan {
  /** Name of the format; undefined where none was recognised. */
  readonly format: string | undefined;
  readonly options: ImportOptions;
  /** Which conversations of this format are left out as known. */
  readonly dedupe: Dedupe;
  /** Rows of our own form, taken with all their fields. */
  readonly isVerbatim: boolean;
  /** Model folder for `max_tokens`. */
  readonly tokenizerFolder?: string;
  /** Every line left out is named, not only the first few for each reason. */
  readonly reportsAll: boolean;
}

/** Whether rows are compared or ranked, by keys. */
export const needsKeys = ({ dedupe, options }: ReadPlan): boolean => dedupe !== "none" || options.sample !== undefined;

/** From which similarity on rows are left out as nearly equal; undefined where they are not. */
export const nearThreshold = ({ dedupe, options }: ReadPlan): number | undefined =>
  dedupe === "near" ? (options.near_threshold ?? DEFAULT_NEAR_THRESHOLD) : undefined;

export function formatOptions({ options, isVerbatim }: ReadPlan): FormatOptions {
  return {
    keepTools: options.keep_tools ?? false,
    keepThinking: options.keep_thinking ?? false,
    rolePrefixes: rolePrefixes(options.role_prefix ?? []),
    allChoices: options.choices === "all",
    isVerbatim,
  };
}

const ROLE_PREFIX = /^(system|user|assistant)=(\s*\S[\s\S]*)$/;

/** The longest first, so that one which begins like another is found. */
function rolePrefixes(written: readonly string[]): readonly RolePrefix[] {
  const read = written.map((text) => {
    const [, role = "", prefix = ""] = ROLE_PREFIX.exec(text) ?? [];
    return { role, prefix };
  });
  return read.sort((a, b) => b.prefix.length - a.prefix.length);
}

/** The options as a user writes them, in the spec's `import` block or as flags. What is absent has its default. */
export interface ImportFields {
  readonly min_messages?: number | undefined;
  readonly limit?: number | undefined;
  readonly keep_tools?: boolean | undefined;
  readonly keep_thinking?: boolean | undefined;
  readonly role_prefix?: readonly string[] | undefined;
  readonly choices?: string | undefined;
  readonly where?: readonly string[] | undefined;
  readonly min_score?: number | undefined;
  readonly weight_by?: string | undefined;
  readonly max_tokens?: number | undefined;
  readonly model?: string | undefined;
  readonly redact?: boolean | undefined;
  readonly redact_names?: readonly string[] | undefined;
  readonly redact_patterns?: readonly string[] | undefined;
  readonly dedupe?: string | undefined;
  readonly near_threshold?: number | undefined;
  readonly sample?: number | undefined;
  readonly seed?: number | undefined;
  readonly split?: string | undefined;
  readonly test_share?: number | undefined;
  readonly max_line_bytes?: number | undefined;
}

const DEFAULT_MIN_MESSAGES = 2;

/** `tokenizer`: digest of the text files of `model`. Whatever equals its default is left out. */
export function importOptions(fields: ImportFields, tokenizer?: string): ImportOptions {
  const written: Record<string, unknown> = {
    limit: fields.limit,
    keep_tools: fields.keep_tools || undefined,
    keep_thinking: fields.keep_thinking || undefined,
    role_prefix: fields.role_prefix?.length ? fields.role_prefix : undefined,
    choices: fields.choices === "all" ? "all" : undefined,
    where: fields.where?.length ? fields.where : undefined,
    min_score: fields.min_score,
    weight_by: fields.weight_by,
    max_tokens: fields.max_tokens,
    tokenizer,
    redact: fields.redact ? redactOptions(fields) : undefined,
    dedupe: fields.dedupe,
    near_threshold: fields.near_threshold === DEFAULT_NEAR_THRESHOLD ? undefined : fields.near_threshold,
    sample: fields.sample,
    seed: fields.seed || undefined,
    split: fields.split,
    test_share: fields.test_share === DEFAULT_TEST_SHARE ? undefined : fields.test_share,
    max_line_bytes: fields.max_line_bytes === DEFAULT_LINE_BYTES ? undefined : fields.max_line_bytes,
  };
  const given = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
  return { min_messages: fields.min_messages ?? DEFAULT_MIN_MESSAGES, ...given };
}

function redactOptions({ redact_names, redact_patterns }: ImportFields): RedactOptions {
  return {
    ...(redact_names?.length ? { names: redact_names } : {}),
    ...(redact_patterns?.length ? { patterns: redact_patterns } : {}),
  };
}

/** What stands together but cannot be done, or does nothing: a sentence, with fields named by `spell`. */
export function optionFault(fields: ImportFields, spell: (field: keyof ImportFields) => string): string | undefined {
  const needs: readonly (readonly [keyof ImportFields, keyof ImportFields])[] = [
    ["seed", "sample"],
    ["test_share", "split"],
    ["max_tokens", "model"],
    ["model", "max_tokens"],
    ["redact_names", "redact"],
    ["redact_patterns", "redact"],
  ];
  for (const [field, other] of needs) {
    const value = fields[field];
    if (value !== undefined && !(Array.isArray(value) && value.length === 0) && !fields[other])
      return `${spell(field)} does nothing without ${spell(other)}.`;
  }
  if (fields.near_threshold !== undefined && fields.dedupe !== "near")
    return `${spell("near_threshold")} does nothing without ${spell("dedupe")} near.`;
  const odd = fields.role_prefix?.find((text) => !ROLE_PREFIX.test(text));
  if (odd !== undefined)
    return `${spell("role_prefix")} takes ROLE=PREFIX with the role system, user or assistant, as in assistant=AI:, and not \`${odd}\`.`;
  return undefined;
}
