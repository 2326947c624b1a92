/** Files of the web. Nobody is told who asks: there are no credentials but those that an address itself may hold. */
import type { Agent } from "undici";
import { shownAddress } from "../url.ts";
import { type Version, validator } from "./file.ts";
import { type Answer, busyRefusal, discard, open, Refusal } from "./request.ts";
import type { Store, StoreContext } from "./store.ts";

export class Web implements Store {
  readonly #dispatcher: Agent;
  readonly #answerMs: number;

  constructor(dispatcher: Agent, answerMs: number) {
    this.#dispatcher = dispatcher;
    this.#answerMs = answerMs;
  }

  open(address: string, headers: Readonly<Record<string, string>>, { signal }: StoreContext): Promise<Answer> {
    return open(new URL(address), {
      dispatcher: this.#dispatcher,
      answerMs: this.#answerMs,
      signal,
      // As the file is stored: compression is told by the content.
      headersFor: () => ({ "accept-encoding": "identity", ...headers }),
    });
  }

  restOf(version: Version, at: number): Readonly<Record<string, string>> | undefined {
    const known = validator(version);
    return known === undefined ? undefined : { range: `bytes=${at}-`, "if-range": known };
  }

  async refusal(address: string, answer: Answer): Promise<Refusal> {
    const { status } = answer;
    await discard(answer.body);
    const name = shownAddress(address);
    if (status === 401 || status === 403) {
      const signed = /[?]/.test(address) ? " Where the address is signed, it may have expired." : "";
      const why = `${name} is not given to whom did not sign in (${status}), and no credentials are sent to web addresses.${signed} Give an address that is open or signed, or download the file and name that.`;
      return new Refusal("RL6031", why, false);
    }
    if (status === 404 || status === 410)
      return new Refusal("RL6032", `There is nothing at ${name} (${status}).`, false);
    return busyRefusal("RL6030", answer);
  }

  async list(): Promise<undefined> {
    return undefined;
  }
}
