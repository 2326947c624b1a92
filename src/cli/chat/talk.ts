/** A conversation with one model or with several at once: what was said, the commands that begin with `/`, and the answers as they come. */
import { type AnswerWishes, answer, promptOf } from "../../chat/answer.ts";
import { RlcliError } from "../../diagnostic.ts";
import { didYouMean } from "../../suggest.ts";
import { TinkerError } from "../../tinker/errors.ts";
import type { Message } from "../../tokens/conversation.ts";
import type { Style } from "../views/style.ts";
import { safeText } from "../views/text.ts";
import type { Voice } from "../voices.ts";
import { DROPPED, type Screen } from "./screen.ts";

export interface TalkSettings {
  readonly voices: readonly Voice[];
  readonly wishes: AnswerWishes;
  readonly system: string | undefined;
  readonly style: Style;
  /** Writes a text into a file of the user's; throws what is to be told. */
  save(path: string, text: string): void;
}

interface Turn {
  readonly question: string;
  /** By voice; undefined where it gave none. */
  readonly replies: readonly (string | undefined)[];
}

const HELP = `  /system TEXT   the system message from now on; without TEXT, shows it ("" takes it away)
  /retry         the last answer once more
  /clear         forgets what was said
  /save FILE     writes the conversation, a JSON line for each model
  /help          this
  /exit          ends; so does Ctrl-D
  """            begins and ends a text of several lines
  Ctrl-C         ends an answer; takes back what is being typed
`;

const COMMANDS = ["/system", "/retry", "/clear", "/save", "/help", "/exit"];
const FENCE = '"""';
/** From one answer to the same question to the next, where a seed is given: beyond the samples of one. */
const RETRY_SEEDS = 1009;

export class Talk {
  readonly #screen: Screen;
  readonly #settings: TalkSettings;
  readonly #turns: Turn[] = [];
  #system: string | undefined;
  #retries = 0;

  constructor(screen: Screen, settings: TalkSettings) {
    this.#screen = screen;
    this.#settings = settings;
    this.#system = settings.system || undefined;
  }

  /** Until the input ends or `/exit`. Rejects where the server is gone for good. */
  async run(): Promise<void> {
    const { style, voices } = this.#settings;
    this.#note(`${voices.map(({ name }) => name).join(", ")}. /help tells what there is.`);
    for (;;) {
      const line = await this.#screen.line(style.bold("> "));
      if (line === undefined) break;
      const text = line.trim();
      if (text === "/exit" || text === "/quit") return;
      if (text.startsWith("/")) await this.#command(text);
      else await this.#ask(text.startsWith(FENCE) ? await this.#rest(text.slice(FENCE.length)) : text);
    }
    this.#screen.write("\n");
  }

  /** A text of several lines, up to the fence: no command, whatever it begins with. Empty where it was taken back. */
  async #rest(first: string): Promise<string> {
    const lines: string[] = [];
    for (
      let line: Awaited<ReturnType<Screen["more"]>> = first;
      line !== undefined;
      line = await this.#screen.more("… ")
    ) {
      if (line === DROPPED) return "";
      const end = line.lastIndexOf(FENCE);
      lines.push(end < 0 ? line : line.slice(0, end));
      if (end >= 0) break;
    }
    return lines.join("\n").trim();
  }

  async #command(text: string): Promise<void> {
    const [, name = "", rest = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
    switch (name) {
      case "system":
        if (rest !== "") this.#system = rest === '""' ? undefined : rest;
        return this.#note(this.#system === undefined ? "No system message." : `System message: ${this.#system}`);
      case "retry":
        return this.#retry();
      case "clear":
        this.#turns.length = 0;
        return this.#note("Nothing has been said.");
      case "save":
        return this.#save(rest);
      case "help":
      case "?":
        return this.#screen.write(HELP);
      default:
        return this.#note(`There is no /${name}.${didYouMean(`/${name}`, COMMANDS)} /help tells what there is.`);
    }
  }

  async #retry(): Promise<void> {
    const last = this.#turns.pop();
    if (!last) return this.#note("Nothing has been asked.");
    this.#retries += 1;
    await this.#answer(last.question);
  }

  async #ask(question: string): Promise<void> {
    if (question === "") return;
    this.#retries = 0;
    await this.#answer(question);
  }

  async #answer(question: string): Promise<void> {
    const { voices } = this.#settings;
    const replies: (string | undefined)[] = voices.map(() => undefined);
    await this.#screen.interruptible(async (signal) => {
      for (const [i, voice] of voices.entries()) {
        if (signal.aborted) break;
        if (voices.length > 1) this.#screen.write(`${this.#settings.style.bold(voice.name)}\n`);
        replies[i] = await this.#write(voice, this.#messages(i, question), signal);
      }
    });
    this.#turns.push({ question, replies });
  }

  /** Shows an answer as it comes; gives what was said, also where it was cut short. */
  async #write({ model }: Voice, messages: readonly Message[], signal: AbortSignal): Promise<string | undefined> {
    const { wishes } = this.#settings;
    const seed = wishes.seed === undefined ? {} : { seed: wishes.seed + this.#retries * RETRY_SEEDS };
    let said = "";
    try {
      const prompt = promptOf(model, { messages }, wishes);
      const pieces = answer(model, prompt, { ...wishes, ...seed, isStreamed: true }, signal);
      for (;;) {
        const { value, done } = await pieces.next();
        if (done) {
          this.#screen.write("\n");
          if (value.reason === "length") this.#note("(cut at its longest; --max-tokens sets it)");
          return said;
        }
        said += value.text;
        this.#screen.write(safeText(value.text));
      }
    } catch (error) {
      if (said !== "") this.#screen.write("\n");
      this.#note(signal.aborted ? "(ended)" : faultOf(error));
      return said === "" ? undefined : said;
    }
  }

  #messages(voice: number, question?: string): readonly Message[] {
    const turns = this.#turns.flatMap(({ question: asked, replies }) => {
      const reply = replies[voice];
      return reply === undefined ? [] : [user(asked), { role: "assistant", content: reply }];
    });
    const system = this.#system === undefined ? [] : [{ role: "system", content: this.#system }];
    return [...system, ...turns, ...(question === undefined ? [] : [user(question)])];
  }

  #save(path: string): void {
    if (path === "") {
      this.#note("Say where to: /save FILE");
      return;
    }
    if (this.#turns.length === 0) {
      this.#note("Nothing has been said.");
      return;
    }
    const lines = this.#settings.voices.map((_, i) => `${JSON.stringify({ messages: this.#messages(i) })}\n`);
    try {
      this.#settings.save(path, lines.join(""));
      this.#note(`Written to ${path}.`);
    } catch (error) {
      this.#note(faultOf(error));
    }
  }

  #note(text: string): void {
    this.#screen.write(`${this.#settings.style.dim(safeText(text))}\n`);
  }
}

const user = (content: string): Message => ({ role: "user", content });

/** In words; what is no fault of the server's or the user's is thrown on. */
function faultOf(error: unknown): string {
  if (error instanceof RlcliError) return error.diagnostics.map(({ detail }) => detail).join(" ");
  if (error instanceof TinkerError) return `${error.message.replace(/\.$/, "")}. /retry asks again.`;
  throw error;
}
