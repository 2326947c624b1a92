/** Patterns of paths with `/` between their parts. `*` and `?` stay within a part, `**` does not; `[a-z]`, `[!a]` and `{a,b}` as in shells. */

/** The whole of a path that a glob stands for. */
export function globPattern(glob: string): RegExp {
  const body = glob.replace(/\*\*\/?|\*|\?|\{[^{}]*\}|[.+^$()|\\{}]/g, (part) => {
    if (part === "**/") return "(?:.*/)?";
    if (part === "**") return ".*";
    if (part === "*") return "[^/]*";
    if (part === "?") return "[^/]";
    if (part.length > 1) return `(?:${part.slice(1, -1).split(",").map(escaped).join("|")})`;
    return `\\${part}`;
  });
  return new RegExp(`^${body.replaceAll("[!", "[^")}$`, "s");
}

const escaped = (text: string): string => text.replace(/[.+^$()|\\*?[\]{}]/g, "\\$&");

/** What every path begins with that a glob stands for; undefined where it is no glob. */
export function globStart(glob: string): string | undefined {
  const at = glob.search(/[*?[{]/);
  return at < 0 ? undefined : glob.slice(0, at);
}
