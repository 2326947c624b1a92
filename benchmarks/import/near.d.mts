/** A type rather than an interface, so that it passes for a record. */
export type GeneratedMessage = { readonly role: string; readonly content: string };

export function generator(seed: number): { chats(count: number): GeneratedMessage[][] };
