/** What the API asks of the compute thread when sessions end, over one that only takes notes. */
import { expect, test } from "vitest";
import { Fields } from "../../../src/servers/embedded/api/fields.ts";
import { samplingRoutes } from "../../../src/servers/embedded/api/sampling.ts";
import { ApiState } from "../../../src/servers/embedded/api/state.ts";
import type { Computer } from "../../../src/servers/embedded/computer.ts";
import type { Operation } from "../../../src/servers/embedded/messages.ts";

const SESSION_TIMEOUT_MS = 1000;

/** Samples never end. */
function newState() {
  const asked: Operation[] = [];
  const facts = {
    vocabSize: 256,
    contextLength: 64,
    mostTrainedTokens: 64,
    eosTokens: [0],
    mostRank: 4,
    parameters: 1,
  };
  const computer = {
    facts,
    run: (operation: Operation) => {
      asked.push(operation);
      return operation.op === "sample" ? new Promise(() => {}) : Promise.resolve(null);
    },
  } as unknown as Computer;
  const settings = {
    model: "builtin:tiny",
    modelFolder: "/models/tiny",
    serverFolder: "/nowhere",
    serverRun: "0123456789",
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    holdMs: 1,
  };
  const state = new ApiState(settings, computer);
  const routes = samplingRoutes(state);
  const post = async (path: string, body: object) =>
    (await routes[`POST /api/v1${path}`]!({ body: new Fields(body), digest: JSON.stringify(body) } as never)) as Record<
      string,
      string
    >;
  const sampling = async () => {
    const session = state.createSession({ userMetadata: null, displayName: null, project: null });
    const call = { session_id: session.id, sampling_session_seq_id: 0, base_model: "builtin:tiny" };
    const { sampling_session_id } = await post("/create_sampling_session", call);
    const prompt = { chunks: [{ type: "encoded_text", tokens: [1, 2] }] };
    const submitted: string[] = [];
    for (const seq_id of [0, 1, 1]) {
      const body = { sampling_session_id, seq_id, prompt, sampling_params: { max_tokens: 2 } };
      submitted.push((await post("/asample", body)).request_id as string);
    }
    return { session, submitted };
  };
  const cancelled = () => asked.flatMap((operation) => (operation.op === "cancel" ? [operation.ticket] : []));
  const outcome = (id: string) => state.futures.wait(id, 0, new AbortController().signal);
  return { state, sampling, cancelled, outcome };
}

test.each([
  ["finishes", (state: ApiState) => state.endSession([...state.sessions.values()][0]!, "finished")],
  ["is not heard of any more", (state: ApiState) => state.sweep(Date.now() + SESSION_TIMEOUT_MS + 1)],
])("samples of a session that %s are cancelled and gone; those of others stay", async (how, end) => {
  const { state, sampling, cancelled, outcome } = newState();
  const over = await sampling();
  const other = await sampling();
  other.session.lastSeenMs = Date.now() + 10 * SESSION_TIMEOUT_MS;
  const [first, second, again] = over.submitted as [string, string, string];
  // The same number with the same bytes is the same request.
  expect(again).toBe(second);
  expect(state.futures.open).toBe(4);
  end(state);
  expect(cancelled(), how).toEqual([first, second]);
  expect(await outcome(first)).toBe("gone");
  expect(await outcome(other.submitted[0]!)).toMatchObject({ pending: true });
  expect(state.futures.open).toBe(2);
});
