// Which encoding crosses the wire: protobuf where the server takes it, JSON where not, found out once per client.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Compress, runtimeZstd, zstdOf } from "../../src/tinker/compress.ts";
import { type Datum, TinkerClient, type TinkerClientOptions } from "../../src/tinker/index.ts";
import { FakeServer, faultsOn } from "./fake-server.ts";

let server: FakeServer;
let clients: TinkerClient[] = [];
const connect = (options: Partial<TinkerClientOptions> = {}) => {
  const client = new TinkerClient({ baseUrl: server.url, retry: { firstDelayMs: 1, deadlineMs: 60_000 }, ...options });
  clients.push(client);
  return client;
};
beforeEach(async () => {
  server = await new FakeServer().start();
});
afterEach(async () => {
  for (const client of clients) await client.close();
  clients = [];
  await server.stop();
});

const data: Datum[] = [
  {
    input: Int32Array.of(1, 2, 3),
    lossInputs: { target_tokens: Int32Array.of(2, 3, 4), weights: Float32Array.of(0, 0.1, 1 / 3) },
  },
];
const CE = { name: "cross_entropy" };
const newModel = async (client: TinkerClient) =>
  (await client.createSession()).createModel({ baseModel: "toy", loraRank: 0 });
const types = () =>
  server.requests.filter((r) => /^\/forward/.test(r.path)).map((r) => [r.path, r.headers["content-type"]]);
const PROTOBUF = "application/x-protobuf";

describe("training data", () => {
  test("goes as protobuf, results may come in either", async () => {
    const model = await newModel(connect());
    const proto = await (await model.forward(data, CE)).result();
    await (await model.forwardBackward(data, CE)).result();
    expect(types()).toEqual([
      ["/forward_backward", PROTOBUF],
      ["/forward_backward", PROTOBUF],
    ]);
    const polls = server.requests.filter((r) => r.path === "/retrieve_future").map((r) => r.headers.accept);
    expect(polls).toEqual(["application/json", ...Array(2).fill(`${PROTOBUF}, application/json`)]);
    const json = await (await newModel(connect({ encoding: "json" }))).forward(data, CE);
    expect((await json.result()).outputs).toEqual(proto.outputs);
  });

  test("falls back to JSON once, with the same number, and remembers it", async () => {
    server.takesProtobuf = false;
    const client = connect();
    const model = await newModel(client);
    await (await model.forwardBackward(data, CE)).result();
    await (await model.forward(data, CE)).result();
    expect(types()).toEqual([
      ["/forward_backward", PROTOBUF],
      ["/forward_backward", "application/json"],
      ["/forward", "application/json"],
    ]);
    expect(model.nextSeqId).toBe(3);
    expect(client.passEncoding).toBe("json");
  });

  test("a request that is wrong in itself settles nothing", async () => {
    const client = connect();
    const model = await newModel(client);
    const bad = { type: "answer", status: 422, body: { detail: "no such loss" } } as const;
    server.fault = faultsOn("/forward_backward", bad, bad);
    await expect(model.forwardBackward(data, CE, { seqIds: [1] })).rejects.toThrow("no such loss");
    expect(client.passEncoding).toBeUndefined();
    await (await model.forwardBackward(data, CE, { seqIds: [1] })).result();
    expect(client.passEncoding).toBe("protobuf");
  });

  test("what an earlier process sent as JSON is recognised", async () => {
    const model = await newModel(connect({ encoding: "json" }));
    const first = await model.forwardBackward(data, CE, { seqIds: [1] });
    const again = connect().resumeSession("session-1").resumeModel(model.id, 1);
    const second = await again.forwardBackward(data, CE, { seqIds: [1] });
    expect(second.requestId).toBe(first.requestId);
  });

  test("both encodings carry the same bits", async () => {
    const bits: string[] = [];
    for (const encoding of ["json", "protobuf"] as const) {
      const model = await newModel(connect({ encoding }));
      await (await model.forwardBackward(data, CE)).result();
      await (await model.optimStep({ learning_rate: 0.1 })).result();
      bits.push(server.models.get(model.id)!.bytes());
    }
    expect(bits[0]).toBe(bits[1]);
  });

  test("a binary result that does not parse is a failure that says so", async () => {
    const model = await newModel(connect());
    const pass = await model.forward(data, CE);
    server.fault = (r) =>
      r.path === "/retrieve_future"
        ? { type: "answer", status: 200, body: "\u0007\u0007", headers: { "content-type": PROTOBUF } }
        : undefined;
    await expect(pass.result()).rejects.toMatchObject({
      kind: "failed",
      reason: expect.stringContaining("ForwardBackwardOutput"),
    });
  });
});

describe("compression", () => {
  const flip: Compress = async (bytes) => bytes.map((b) => b ^ 0xff);
  test("happens where the server asks for it and the runtime has it", async () => {
    server.config = { proto_compress_fwdbwd: true };
    server.decompress = (body, encoding) => (encoding === "zstd" ? body.map((b) => b ^ 0xff) : body);
    const model = await newModel(connect({ compress: flip }));
    await (await model.forwardBackward(data, CE)).result();
    const codings = () => server.requests.flatMap((r) => r.headers["content-encoding"] ?? []);
    expect(codings()).toEqual(["zstd"]);
    await (await (await newModel(connect({ compress: null }))).forward(data, CE)).result();
    server.config = {};
    await (await (await newModel(connect({ compress: flip }))).forward(data, CE)).result();
    expect(codings()).toEqual(["zstd"]);
  });
  test("is taken from the runtime where that has it", async () => {
    expect(zstdOf({})).toBeUndefined();
    const fake = { zstdCompress: (b: Uint8Array, done: (e: null, r: Uint8Array) => void) => done(null, b.slice(1)) };
    expect(await zstdOf(fake)!(Uint8Array.of(1, 2))).toEqual(Uint8Array.of(2));
    const failing = { zstdCompress: (_: Uint8Array, done: (e: Error) => void) => done(new Error("full")) };
    await expect(zstdOf(failing)!(Uint8Array.of(1))).rejects.toThrow("full");
  });
  test.runIf(runtimeZstd)("the runtime's frames are zstd", async () => {
    expect([...(await runtimeZstd!(Buffer.from("aaaa"))).slice(0, 4)]).toEqual([0x28, 0xb5, 0x2f, 0xfd]);
  });
});

describe("client/config", () => {
  test("is asked for once; a server without it has the defaults", async () => {
    server.config = undefined;
    const client = connect();
    const { limits } = await client.config();
    expect(limits).toEqual({ datums: 1024, bytes: 5_000_000 });
    await (await newModel(client)).forward(data, CE);
    expect(server.count("/client/config")).toBe(1);
  });
  test("flags of another type count as left out", async () => {
    server.config = { fwdbwd_max_chunk_len: "many", fwdbwd_max_chunk_bytes_count: -1, proto_compress_fwdbwd: 1 };
    expect(await connect().config()).toMatchObject({
      limits: { datums: 1024, bytes: 5_000_000 },
      compressesPasses: false,
    });
  });
  test("is asked again after a failure, and one caller's abort is not another's", async () => {
    const client = connect({ retry: { firstDelayMs: 1, deadlineMs: 1 }, timeoutMs: 2000 });
    server.fault = faultsOn("/client/config", { type: "answer", status: 500 });
    await expect(client.config()).rejects.toMatchObject({ kind: "failed" });
    const aborted = client.config({ signal: AbortSignal.timeout(0) });
    await Promise.allSettled([aborted]);
    expect(await client.config()).toMatchObject({ samplesAtOnce: 2000 });
  });
});

describe("a credential that is exchanged", () => {
  const jwtOf = (seconds: number) =>
    `h.${Buffer.from(JSON.stringify({ exp: Date.now() / 1000 + seconds })).toString("base64url")}.s`;
  test("is renewed before its end and when the server calls it stale; the key goes to the exchange only", async () => {
    server.config = { pjwt_auth_enabled: true };
    const tokens = [jwtOf(1), jwtOf(3600), `${jwtOf(3600)}2`];
    const stale = { "www-authenticate": 'Bearer error="invalid_token"' };
    let isRevoked = false;
    server.fault = (r) => {
      if (r.path === "/auth/token") return { type: "answer", status: 200, body: { jwt: tokens.shift() } };
      const isOld = isRevoked && !String(r.headers["x-api-key"]).endsWith("2");
      return isOld && r.path === "/create_session" ? { type: "answer", status: 401, headers: stale } : undefined;
    };
    const client = connect({ apiKey: "tml-secret" });
    await client.config();
    await client.capabilities();
    await client.capabilities();
    await client.capabilities();
    expect(server.count("/auth/token")).toBe(2);
    isRevoked = true;
    await client.createSession();
    expect(server.count("/auth/token")).toBe(3);
    const keys = server.requests.map((r) => [r.path, r.headers["x-api-key"] === "tml-secret"]);
    expect(keys.filter(([, isKey]) => isKey).map(([path]) => path)).toEqual([
      "/client/config",
      ...Array(3).fill("/auth/token"),
    ]);
  });

  test("is asked for again where the exchange is busy, and not where it is refused", async () => {
    server.config = { pjwt_auth_enabled: true };
    const statuses = [503, 429, 200, 403];
    server.fault = (r) => {
      if (r.path !== "/auth/token") return undefined;
      const status = statuses.shift() ?? 403;
      return { type: "answer", status, body: status === 200 ? { jwt: jwtOf(1) } : { detail: "no" } };
    };
    const client = connect({ apiKey: "tml-secret" });
    await client.config();
    await client.capabilities();
    expect(server.count("/auth/token")).toBe(3);
    await expect(client.capabilities()).rejects.toMatchObject({ kind: "rejected", status: 403 });
    expect(server.count("/auth/token")).toBe(4);
  });
});
