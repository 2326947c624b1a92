/** `rlcli support`: secrets are planted wherever one can get to, and none is found in what is written. */
import { appendFileSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { extract } from "tar-stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Masker, secretNames, secretValues } from "../../src/cli/support/mask.ts";
import { rows, SPEC, TestProject } from "./project.ts";

/** Unlike anything that stands in a bundle by itself. */
const SECRETS = {
  environment: "Vq7-planted-in-the-environment",
  named: "plain words that only the spec calls secret",
  quoted: 'has "quotes" and \\ in it',
  literal: "wordsonlykey",
  inUrl: "Zt5-planted-in-a-url",
  inQuery: "Qr3plantedinaquery",
  inCommand: "Cm8plantedincommand",
  inLog: "Lg8planted0in0a0log0000000",
  hub: `hf_${"a1B2".repeat(9)}`,
};
const CANARY = "a canary sings in the training data";

async function unpack(path: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const reader = extract();
  reader.end(gunzipSync(readFileSync(path)));
  for await (const entry of reader) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    files.set(entry.header.name.split("/").slice(1).join("/"), Buffer.concat(chunks).toString());
  }
  return files;
}

describe("a bundle", () => {
  let project: TestProject;
  let files: Map<string, string>;
  let token: string;
  beforeAll(async () => {
    project = new TestProject({
      "rlcli.yaml":
        `# database: postgres://me:${SECRETS.inUrl}@db/x\n# http://h/score?sig=${SECRETS.inQuery}\n# command: [grade, --token, ${SECRETS.inCommand}]\n${SPEC.replace("server: {", "servers:\n  default: {")}`
          .replace(
            "datasets:",
            `  other: { backend: external, url: "http://127.0.0.1:9", model: m, api_key: "\${secret.TEAM_WORD}" }\ndatasets:`,
          )
          .replace("{ type: sl,", "{ type: sl, server: default,"),
      "numbers.jsonl": rows([CANARY, "two", "three", "four"]),
    });
    Object.assign(project.env, {
      MY_SERVICE_KEY: SECRETS.environment,
      TEAM_WORD: SECRETS.named,
      A_PASSWORD: SECRETS.quoted,
    });
    project.ok("apply", "-y");
    token = project.ok("serve", "token", "default").trim();
    const log = [
      `GET / Authorization: Bearer ${SECRETS.inLog}`,
      `using ${SECRETS.environment} and ${SECRETS.named}`,
      JSON.stringify({ sent: SECRETS.quoted, as: Buffer.from(`user:${SECRETS.environment}`).toString("base64") }),
      `hub ${SECRETS.hub} key ${token}`,
      `Error: ${encodeURIComponent(SECRETS.named)} refused`,
    ].join("\n");
    appendFileSync(join(project.runFolder("count"), "log.txt"), `${log}\n`);
    appendFileSync(join(project.folder, ".rlcli/servers/default/log.txt"), `${log}\n`);
    project.ok("support", "-o", "bundle.tar.gz");
    files = await unpack(join(project.folder, "bundle.tar.gz"));
  });
  afterAll(() => project.close());

  test("has what somebody who is to help needs", () => {
    const names = [...files.keys()];
    for (const name of ["versions.json", "doctor.txt", "spec/rlcli.yaml", "diagnostics.txt", "state/lineage.json"])
      expect(names).toContain(name);
    expect(names.some((name) => /^state\/records\/run\.count@\d+\.json$/.test(name))).toBe(true);
    for (const name of ["journal.jsonl", "metrics.jsonl", "events.jsonl", "wire.jsonl", "log.txt", "spec.json"])
      expect(names.some((one) => one.startsWith("runs/count/") && one.endsWith(`/${name}`))).toBe(true);
    expect(files.get("servers/default/log.txt")).toContain("serving builtin:tiny");
    expect(files.get("faults.txt")).toContain("refused");
    expect(files.get("spec/rlcli.yaml")).toContain("${secret.TEAM_WORD}");
    expect(JSON.parse(files.get("versions.json") ?? "")).toMatchObject({ node: process.version });
    expect(statSync(join(project.folder, "bundle.tar.gz")).mode & 0o777).toBe(0o600);
  });

  test.each(Object.entries(SECRETS))("no secret of the kind %s", (_, secret) => {
    const all = [...files].map(([name, text]) => `${name}\n${text}`).join("\n");
    for (const spelling of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
      expect(all).not.toContain(spelling);
  });

  test("nor the server's key, and no base64 of a secret", () => {
    for (const text of files.values()) {
      expect(text).not.toContain(token);
      for (const word of text.match(/[A-Za-z0-9+/]{16,}={0,2}/g) ?? [])
        expect(Buffer.from(word, "base64").toString("latin1")).not.toContain(SECRETS.environment);
    }
  });

  test("the key that went with every request is not in the trace of them, on the disk either", () => {
    const trace = readFileSync(join(project.runFolder("count"), "wire.jsonl"), "utf8");
    const [, ...exchanges] = trace
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(exchanges.map(({ path }) => path)).toEqual(
      expect.arrayContaining(["/api/v1/create_model", "/api/v1/optim_step", "/api/v1/retrieve_future"]),
    );
    expect(exchanges.filter(({ path, status }) => path === "/api/v1/optim_step" && status === 200)).toHaveLength(6);
    for (const secret of [token, CANARY]) expect(trace).not.toContain(secret);
  });

  test("no training data, unless it is asked for", async () => {
    for (const text of files.values()) expect(text).not.toContain(CANARY);
    project.ok("support", "-o", "data.tar.gz", "--with-data");
    const more = await unpack(join(project.folder, "data.tar.gz"));
    expect([...more.values()].some((text) => text.includes(CANARY))).toBe(true);
  });

  test("never over a file, and also where the spec does not load", async () => {
    expect(project.run(["support", "-o", "bundle.tar.gz"]).err).toContain("RL9004");
    const good = readFileSync(join(project.folder, "rlcli.yaml"), "utf8");
    project.write("rlcli.yaml", good.replace('"${secret.TEAM_WORD}"', SECRETS.literal));
    project.ok("support", "-o", "broken.tar.gz");
    const broken = await unpack(join(project.folder, "broken.tar.gz"));
    expect(broken.get("diagnostics.txt")).toContain("RL1308");
    for (const text of broken.values()) expect(text).not.toContain(SECRETS.literal);
    project.write("rlcli.yaml", good);
  });
});

describe("masking", () => {
  const mask = (text: string, ...values: string[]) => new Masker(values).mask(text);

  test.each([
    ["a value that is known", "say opensesame now", ["opensesame"], "say [masked] now"],
    ["a name that says so", "password: hunter", [], "password: [masked]"],
    ["JSON", '{"api_key":"abcd"}', [], '{"api_key":"[masked]"}'],
    ["a header", "Authorization: Bearer abcdefgh", [], "Authorization: Bearer [masked]"],
    ["a reference to a secret", "api_key: ${secret.X}", [], "api_key: ${secret.X}"],
    ["a rate of tokens", '"tokensPerSecond":1234.5, "tokens":12345', [], '"tokensPerSecond":1234.5, "tokens":12345'],
    [
      "an address",
      "http://h/v1?key=ab12&x=1&access_token=cd&sig=ef",
      [],
      "http://h/v1?key=[masked]&x=1&access_token=[masked]&sig=[masked]",
    ],
    [
      "an option",
      "run --api-key=abcd --token efgh --max-tokens 8000",
      [],
      "run --api-key=[masked] --token [masked] --max-tokens 8000",
    ],
    [
      "an option in a list",
      '[g, --token, abcd, "--hub-token", "efgh"]',
      [],
      '[g, --token, [masked], "--hub-token", "[masked]"]',
    ],
    ["an option's help", "--api-key <key>, --token --json", [], "--api-key <key>, --token --json"],
    ["a webhook", "https://hooks.slack.com/services/T0/B0/abcdefgh'", [], "https://hooks.slack.com/services/[masked]'"],
    ["other parameters", "http://h/?page=2000&keys=abcd&design=1", [], "http://h/?page=2000&keys=abcd&design=1"],
    ["a digest", `sha256:${"ab12".repeat(16)}`, [], `sha256:${"ab12".repeat(16)}`],
    ["short values", "a key of x", ["x"], "a key of x"],
  ])("%s", (_, text, values, expected) => {
    expect(mask(text, ...values)).toBe(expected);
  });

  test("secrets of the environment, by their names or because the spec names them", () => {
    const env = { API_KEY: "k1", PATH: "/bin", SSH_AUTH_SOCK: "/tmp/s", MINE: "m1", OTHER: "o" };
    expect(secretValues(env, secretNames("api_key: ${secret.MINE}"))).toEqual(["k1", "m1"]);
  });
});
