/** As much XML as the answers of S3 are: elements without attributes that matter, one within another, of known names. */

/** What stands in each element of a name, in order. */
export function textsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, "g"))].map(
    ([, text]) => text ?? "",
  );
}

/** What stands in the first element of a name. */
export const textOf = (xml: string, name: string): string | undefined => textsOf(xml, name)[0];

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

export function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = Number.parseInt(hex ?? decimal ?? "", hex === undefined ? 10 : 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
