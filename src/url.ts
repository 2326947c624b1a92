/**
 * Addresses on the network, and what in them is secret: a user's name or a password before the `@`, and parameters whose names say so
 * (`?token=…`, `X-Amz-Signature`). A spec is refused with one, since what stands in it is stored and shown; an address that comes
 * from elsewhere (a registry, a server, the environment) is shown and stored without.
 */

/** What takes the place of a secret. */
export const MASK = "[masked]";

/** `https://user:password@`; the group is what stands before the `@`. */
const USER = /\b([a-z][a-z0-9+.-]{0,30}):\/\/([^\s/?#"'<>\\]{1,300})@/gi;

/** Words that may stand before the last one of a parameter's name without a separator: `apiKey`, `SharedAccessSignature`. */
const BEFORE =
  "access|api|app|auth|bearer|client|csrf|id|private|refresh|secret|security|service|session|shared|sign(?:ing)?|subscription|user";

/** A parameter, its name saying that it is secret; `&` may be escaped as in JSON. `code` is one only where it looks like a key. */
const PARAMETER = new RegExp(
  `((?:[?&;#]|\\\\u0026)((?:[\\w.-]{0,60}[-_.])?(?:${BEFORE})*` +
    `(?:key|token|secret|password|passwd|pwd|signature|sig|credentials?|auth|jwt)|code(?==[\\w%+/-]{20}))=)([^\\s&#"'<>\\\\]{2,})`,
  "gi",
);

/** What is filled in elsewhere, or is masked already: `$TOKEN`, `${TOKEN}`, `{token}`, `<token>`, `***`. */
const STANDS_FOR_ANOTHER = /^(?:\$[A-Z_][A-Z0-9_]*|\$?\{[^}]*\}|\[masked\]|%7B[^%]*%7D|\*+)$/i;

/** Names that other things have too: with a word as value they are no secret. */
const MAY_BE_OTHERWISE = /^(?:key|auth)$/i;

function isOpenValue(name: string, value: string): boolean {
  if (STANDS_FOR_ANOTHER.test(value) || /^\d{1,4}$/.test(value)) return true;
  return MAY_BE_OTHERWISE.test(name) && /^[a-z]{1,16}$/.test(value);
}

/** Of these a name before the `@` is no secret, a password is. */
const LOGIN_SCHEME = /(?:^|\+)(?:ssh|sftp)(?:\+|$)/i;

function isOpenUser(scheme: string, user: string): boolean {
  if (LOGIN_SCHEME.test(scheme) && !user.includes(":")) return true;
  return user.split(":").every((part) => STANDS_FOR_ANOTHER.test(part));
}

/** A text with the secrets of all addresses in it masked; `mask` is asked for each. */
export function withoutCredentials(text: string, mask: (secret: string) => string = () => MASK): string {
  if (!/[@=]/.test(text)) return text;
  return text
    .replace(USER, (whole, scheme: string, user: string) =>
      isOpenUser(scheme, user) ? whole : `${scheme}://${mask(user)}@`,
    )
    .replace(PARAMETER, (whole, kept: string, name: string, value: string) =>
      isOpenValue(name, value) ? whole : `${kept}${mask(value)}`,
    );
}

/** What is secret in the addresses of a text, in words that do not repeat it; undefined where nothing is. */
export function credentialIn(text: string): string | undefined {
  if (!text.includes("://")) return undefined;
  for (const [, scheme = "", user = ""] of text.matchAll(USER))
    if (!isOpenUser(scheme, user)) return "a user's name or a password before its `@`";
  for (const [, , name = "", value = ""] of text.matchAll(PARAMETER))
    if (!isOpenValue(name, value)) return `a secret in its parameter \`${name}\``;
  return undefined;
}

/** Whether a text as a whole is an address, or a requirement that is one (`skyrl @ git+https://…`). Prose may speak of addresses. */
const IS_ADDRESS = /^\s*(?:\S+ @ )?\S*:\/\/\S+\s*$/;

/** The same of a field of a spec; `isWord` of an item of a list, which may be a word of a command. */
export function credentialInField(text: string, isWord: boolean): string | undefined {
  return isWord || IS_ADDRESS.test(text) ? credentialIn(text) : undefined;
}

/** Whether a name stands for something that is read over HTTP: at an address of the web, or in a bucket of S3. */
export const isRemoteAddress = (text: string): boolean => /^(?:https?|s3):\/\//i.test(text);

/** An address as it may be shown whatever its parameters are called: without user and password, and of the web without query and fragment. */
export function shownAddress(address: string): string {
  const open = address.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#\s]*@/i, "$1");
  return /^https?:/i.test(open) ? open.replace(/[?#][\s\S]*$/, "") : open;
}
