#!/usr/bin/env node
// Stands in for uv and for SkyRL in tests of supervision: makes "environments" whose python is the machine's, and serves the few calls
// that are asked of a server before it is ready. Like the real one it starts an engine that is a process of its own, answers healthz
// before that engine is up, and ends when the engine ends. FAKE_* variables make it misbehave.
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const [command, ...args] = process.argv.slice(2);
const {
  FAKE_INSTALL_MS = "0",
  FAKE_FAIL_INSTALL,
  FAKE_CALLS,
  FAKE_CRASH,
  FAKE_ENGINE_MS = "50",
  FAKE_EMPTY,
  FAKE_STUBBORN,
  FAKE_SAVE_MS = "0",
} = process.env;
if (FAKE_CALLS) appendFileSync(FAKE_CALLS, `${command} ${args.join(" ")}\n`);
const option = (name) => args[args.indexOf(`--${name}`) + 1];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

if (command === "venv") {
  const folder = args.at(-1);
  mkdirSync(join(folder, "bin"), { recursive: true });
  symlinkSync(process.env.FAKE_PYTHON, join(folder, "bin", "python"));
  writeFileSync(join(folder, "pyvenv.cfg"), "");
} else if (command === "pip") {
  await sleep(Number(FAKE_INSTALL_MS));
  if (FAKE_FAIL_INSTALL && existsSync(FAKE_FAIL_INSTALL)) {
    console.error("error: No solution found: skyrl is not on the index");
    process.exit(1);
  }
} else if (command === "engine") {
  // Outside of the group, as Ray's processes are.
  if (FAKE_STUBBORN) process.on("SIGTERM", () => {});
  setInterval(() => {}, 1000);
} else if (command === "run") {
  serve();
}

function serve() {
  if (FAKE_CRASH === "start") {
    console.error("Traceback (most recent call last):\nRuntimeError: CUDA out of memory: tried to allocate 20 GiB");
    process.exit(1);
  }
  const engine = spawn(process.execPath, [process.argv[1], "engine"], { stdio: "ignore", detached: true });
  console.log(`engine ${engine.pid}`);
  engine.once("exit", () => {
    console.error("2026-01-01 - ERROR - skyrl: Background engine crashed with exit code 137, exiting API server");
    process.exit(1);
  });
  const upAt = Date.now() + Number(FAKE_ENGINE_MS);
  let saveAt = 0;
  const answers = {
    "/api/v1/healthz": () => ({ status: "ok" }),
    "/api/v1/create_session": () => ({ session_id: "session_1" }),
    "/api/v1/session_heartbeat": () => ({}),
    "/api/v1/client/config": () => ({}),
    "/api/v1/create_sampling_session": () => ({ sampling_session_id: "sampling_1" }),
    "/api/v1/asample": () => ({ request_id: "1" }),
    "/api/v1/save_weights": () => {
      saveAt = Date.now() + Number(FAKE_SAVE_MS);
      return { request_id: "2" };
    },
    // What SkyRL says when a worker on its cluster has died; it goes on answering.
    "/api/v1/forward": () => {
      console.error("ActorDiedError: The actor died unexpectedly before finishing this task.");
      return { request_id: "3" };
    },
    "/api/v1/env": () => ({ args, marker: process.env.RLCLI_SERVER, engine: engine.pid }),
  };
  createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const path = request.url.split("?")[0];
    const send = (status, value) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (path === "/api/v1/retrieve_future") {
      const { request_id: id } = JSON.parse(body);
      if (id === "2") {
        await sleep(Math.max(0, saveAt - Date.now()));
        console.log("saved");
        return send(200, { type: "save_weights", path: "tinker://m/weights/n" });
      }
      await sleep(Math.max(0, upAt - Date.now()));
      const sequence = { tokens: FAKE_EMPTY ? [] : [5], logprobs: FAKE_EMPTY ? [] : [-1], stop_reason: "length" };
      return send(200, { type: "sample", sequences: [sequence], prompt_logprobs: null });
    }
    const answer = answers[path];
    return answer ? send(200, answer()) : send(404, { detail: "Not Found" });
  }).listen(Number(option("port")), option("host"));
}
