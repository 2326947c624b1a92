/** Ignore files: `.dockerignore` as Docker's own client reads it, and the gitignore syntax of `.gitignore` and `.harborignore`. */

export interface IgnoreRules {
  /** Whether a path, with `/` and relative to the ignore file's folder, is left out. */
  ignores(path: string): boolean;
}

interface Rule {
  readonly isNegated: boolean;
  readonly regex: RegExp;
}

/** Patterns are anchored at the context's root; a later one wins; what lies in an ignored folder is ignored unless `!` says so. */
export function dockerIgnore(text: string): IgnoreRules {
  const rules = linesOf(text).map((line): Rule => {
    const isNegated = line.startsWith("!");
    const pattern = (isNegated ? line.slice(1).trim() : line).replace(/^\/+|\/+$/g, "").replace(/^\.\//, "");
    return { isNegated, regex: new RegExp(`^${globSource(pattern)}(?:/.*)?$`) };
  });
  return { ignores: (path) => lastMatch(rules, path) };
}

/** A pattern without a slash (but at its end) matches at any depth. */
export function gitIgnore(text: string): IgnoreRules {
  const rules = linesOf(text).map((line): Rule => {
    const isNegated = line.startsWith("!");
    const raw = isNegated ? line.slice(1) : line;
    const pattern = raw.replace(/\/+$/, "");
    const isAnchored = pattern.includes("/");
    const below = raw.endsWith("/") ? "/.*" : "(?:/.*)?";
    return {
      isNegated,
      regex: new RegExp(`^${isAnchored ? "" : "(?:.*/)?"}${globSource(pattern.replace(/^\//, ""))}${below}$`),
    };
  });
  return { ignores: (path) => lastMatch(rules, path) };
}

const linesOf = (text: string): readonly string[] =>
  text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#") && line !== "." && line !== "!");

function lastMatch(rules: readonly Rule[], path: string): boolean {
  let isIgnored = false;
  for (const { isNegated, regex } of rules) if (regex.test(path)) isIgnored = !isNegated;
  return isIgnored;
}

/** `*` and `?` within a name, `**` over any number of folders, `[…]`. */
export function globSource(pattern: string): string {
  let source = "";
  for (let at = 0; at < pattern.length; at += 1) {
    const char = pattern[at] as string;
    if (pattern.startsWith("**/", at)) {
      source += "(?:.*/)?";
      at += 2;
    } else if (pattern.startsWith("**", at)) {
      source += ".*";
      at += 1;
    } else if (char === "*") source += "[^/]*";
    else if (char === "?") source += "[^/]";
    else if (char === "[" && pattern.indexOf("]", at + 1) > at) {
      const end = pattern.indexOf("]", at + 1);
      source += `[${pattern
        .slice(at + 1, end)
        .replace(/^!/, "^")
        .replaceAll("\\", "\\\\")}]`;
      at = end;
    } else if (char === "\\" && at + 1 < pattern.length) {
      at += 1;
      source += escaped(pattern[at] as string);
    } else source += escaped(char);
  }
  return source;
}

const escaped = (char: string): string => char.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
