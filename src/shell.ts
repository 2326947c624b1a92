/** Texts as words of a POSIX shell. */

/** In single quotes, whatever it holds. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** As it is where a shell takes it so; for commands that people copy. */
export const shellWord = (text: string): string => (/^[\w@%+=:,./][\w@%+=:,./-]*$/.test(text) ? text : quoted(text));
