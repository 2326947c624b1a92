/**
 * Submits forward and forward_backward: in the encoding that the server takes, compressed where it asks for it, cut
 * under its limits. To the caller it is one call with one result.
 */

import { checkData, passFault } from "./check.ts";
import { mergePasses, splitData } from "./chunks.ts";
import type { TinkerClient } from "./client.ts";
import type { Datum, Loss, PassResult } from "./data.ts";
import { ACCEPT_BOTH, decodePass, type EncodingName, encodePass, type PassRequest } from "./encoding.ts";
import { TinkerError } from "./errors.ts";
import { type CallOptions, Future, type Pending, type ResultOptions } from "./future.ts";
import type { HttpRequest } from "./transport.ts";

export interface PassCall extends CallOptions {
  readonly modelId: string;
  readonly kind: "forward" | "forward_backward";
  readonly data: readonly Datum[];
  readonly loss: Loss;
  /** A number for each request, or how to take as many from the model's order. */
  readonly seqIds: readonly number[] | ((count: number) => readonly number[]);
  /** A number to repeat a failed pass under, given its last one; undefined where it may not be repeated any more. */
  readonly repeat?: (last: number) => number | undefined;
}

/** Resolves when the server has taken all requests; the next call of the model may then be submitted. */
export async function submitPass(client: TinkerClient, call: PassCall): Promise<Pending<PassResult>> {
  checkData(call.data);
  const { limits } = await client.config(call);
  const parts = splitData(call.data, limits);
  const seqIds = typeof call.seqIds === "function" ? call.seqIds(parts.length) : call.seqIds;
  if (seqIds.length !== parts.length) throw changedLimits(call, seqIds.length, parts.length);
  const futures: Future<PassResult>[] = [];
  // One after another: SkyRL runs a model's calls in the order of their arrival.
  for (const [i, data] of parts.entries()) {
    const { modelId, loss, kind } = call;
    futures.push(await submitPart(client, { modelId, seqId: seqIds[i] as number, data, loss, kind }, call));
  }
  return futures.length === 1 ? (futures[0] as Future<PassResult>) : new MergedPass(futures);
}

/** A repeat needs the same requests as the first time; what was begun under other limits cannot be gone on with. */
function changedLimits({ kind }: PassCall, had: number, has: number): TinkerError {
  const reason = `the server's limits have changed: what was begun as ${had} requests is ${has} now`;
  return new TinkerError({ kind: "gone", endpoint: `POST /api/v1/${kind}`, reason });
}

/** Several futures with one result. */
class MergedPass implements Pending<PassResult> {
  readonly #parts: readonly Future<PassResult>[];

  constructor(parts: readonly Future<PassResult>[]) {
    this.#parts = parts;
  }

  get requestId(): string {
    return this.#parts.map(({ requestId }) => requestId).join(",");
  }

  /** The deadline is for all of it. */
  async result(options: ResultOptions = {}): Promise<PassResult> {
    const startedAt = performance.now();
    const results: PassResult[] = [];
    for (const part of this.#parts) {
      const { deadlineMs } = options;
      const left = deadlineMs === undefined ? {} : { deadlineMs: deadlineMs - (performance.now() - startedAt) };
      results.push(await part.result({ ...options, ...left }));
    }
    return mergePasses(results);
  }
}

/** Answers of a server that cannot read the body: it is worth sending the other form. */
const UNREADABLE: ReadonlySet<number> = new Set([400, 409, 415, 422]);

/**
 * Protobuf first, until the server's first answer has settled it. A request that is wrong in itself is refused in both
 * forms and settles nothing. 409: an earlier process sent the same request in the other form.
 */
async function submitPart(client: TinkerClient, request: PassRequest, call: PassCall): Promise<Future<PassResult>> {
  if (client.passEncoding !== undefined) return submitAs(client, client.passEncoding, request, call);
  try {
    const future = await submitAs(client, "protobuf", request, call);
    client.settlePassEncoding("protobuf");
    return future;
  } catch (error) {
    if (!(error instanceof TinkerError) || error.kind !== "rejected" || !UNREADABLE.has(error.status ?? 0)) throw error;
    const future = await submitAs(client, "json", request, call);
    client.settlePassEncoding("json");
    return future;
  }
}

async function submitAs(
  client: TinkerClient,
  encoding: EncodingName,
  request: PassRequest,
  { signal, repeat }: PassCall,
): Promise<Future<PassResult>> {
  const { compressesPasses } = await client.config({ signal });
  const compress = compressesPasses ? client.compress : undefined;
  const submissionOf = async (seqId: number): Promise<HttpRequest> => {
    const { path, contentType, body } = encodePass(encoding, { ...request, seqId });
    return {
      method: "POST",
      path,
      body: compress ? await compress(body) : body,
      headers: { "content-type": contentType, ...(compress ? { "content-encoding": "zstd" } : {}) },
      signal,
      seq: seqId,
    };
  };
  return Future.submit(client.transport, await submissionOf(request.seqId), {
    accept: ACCEPT_BOTH,
    decode: (answer, fail) => {
      const result = decodePass(answer);
      const fault = passFault(request.data, result);
      if (fault) throw fail(fault);
      return result;
    },
    alone: () => {
      const seqId = repeat?.(request.seqId);
      return seqId === undefined ? undefined : submissionOf(seqId);
    },
  });
}
