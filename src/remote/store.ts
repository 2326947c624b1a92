/** What differs between places that files are read from. */
import type { DiagnosticOptions } from "../diagnostic.ts";
import type { RemoteFile, Version } from "./file.ts";
import type { Answer, Refusal } from "./request.ts";

export interface StoreContext {
  readonly signal: AbortSignal;
  readonly place?: DiagnosticOptions | undefined;
}

export interface Store {
  /** Asks for a file, with headers of the caller's. Throws what the network does. */
  open(address: string, headers: Readonly<Record<string, string>>, context: StoreContext): Promise<Answer>;
  /** Headers that get the rest from a byte on if it is still that version; undefined where only the whole can be asked for. */
  restOf(version: Version, at: number): Readonly<Record<string, string>> | undefined;
  /** What an answer means that is neither 200 nor 206. Its body is read or thrown away. */
  refusal(address: string, answer: Answer): Promise<Refusal>;
  /** The files that a name stands for; undefined where it is the address of one. */
  list(name: string, context: StoreContext): Promise<readonly RemoteFile[] | Refusal | undefined>;
}
