/** Python environments: made once, taken up after an interruption, named by what they are made of. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ensureEnvironment, isInstalled } from "../../../src/servers/skyrl/environment.ts";
import { environmentFolder, recipeOf } from "../../../src/servers/skyrl/recipe.ts";
import { findUv } from "../../../src/servers/skyrl/uv.ts";
import { FakeSite, fakeUv } from "./support.ts";

const EXTRAS = ["jax", "tinker"];
const callsOf = (site: FakeSite) =>
  readFileSync(site.calls, "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(" ")[0]);

test("two who need it at once install it once", async () => {
  const site = new FakeSite({ FAKE_INSTALL_MS: "300" });
  const recipe = recipeOf(EXTRAS, {}, {});
  const phases: string[] = [];
  const options = { env: process.env, onPhase: (text: string) => phases.push(text) };
  const [one, two] = await Promise.all([ensureEnvironment(recipe, options), ensureEnvironment(recipe, options)]);
  expect(one).toEqual(two);
  expect(callsOf(site)).toEqual(["venv", "pip"]);
  expect(phases.join("\n")).toContain("SkyRL@");
  expect(existsSync(join(one.folder, "bin", "python"))).toBe(true);
  await ensureEnvironment(recipe, options);
  expect(callsOf(site)).toHaveLength(2);
});

test("an installation that failed says uv's words, and is taken up where it was", async () => {
  const site = new FakeSite();
  const broken = join(site.root, "broken");
  writeFileSync(broken, "");
  process.env.FAKE_FAIL_INSTALL = broken;
  const recipe = recipeOf(EXTRAS, {}, {});
  const ensure = () => ensureEnvironment(recipe, { env: process.env });
  await expect(ensure()).rejects.toThrow(/skyrl is not on the index[\s\S]*RLCLI_SKYRL_INDEX/);
  expect(isInstalled(recipe, process.env)).toBe(false);
  rmSync(broken);
  await ensure();
  expect(isInstalled(recipe, process.env)).toBe(true);
  expect(callsOf(site)).toEqual(["venv", "pip", "pip"]);
});

test("a password of the machine's package index goes to uv and nowhere else, and another one makes no other environment", async () => {
  const site = new FakeSite();
  const withPassword = (password: string) =>
    recipeOf(EXTRAS, {}, { RLCLI_SKYRL_INDEX: `https://me:${password}@pypi.example.org/simple` });
  const phases: string[] = [];
  const options = { env: process.env, onPhase: (text: string) => phases.push(text) };
  const { folder } = await ensureEnvironment(withPassword("hunter2"), options);
  expect(readFileSync(site.calls, "utf8")).toContain("https://me:hunter2@pypi.example.org");
  const kept = ["recipe.json", "install.log"].map((name) => readFileSync(join(folder, "..", name), "utf8"));
  for (const text of [...kept, ...phases]) expect(text).not.toContain("hunter2");
  expect(kept.join("")).toContain("pypi.example.org");
  expect(isInstalled(withPassword("changed"), process.env)).toBe(true);
});

test("an installation that is aborted is ended", async () => {
  const site = new FakeSite({ FAKE_INSTALL_MS: "60000" });
  const abort = new AbortController();
  const asked = ensureEnvironment(recipeOf(EXTRAS, {}, {}), { env: process.env, signal: abort.signal });
  await expect.poll(() => existsSync(site.calls) && callsOf(site).includes("pip")).toBe(true);
  abort.abort();
  await expect(asked).rejects.toThrow(/abort/i);
});

test.each([
  { what: "the pinned commit", python: {}, env: {}, requirement: /^skyrl\[jax,tinker\] @ git\+https:\S+@[0-9a-f]{9}$/ },
  {
    what: "a wheel of the machine",
    python: {},
    env: { RLCLI_SKYRL_PACKAGE: "/w/skyrl.whl" },
    requirement: /^\/w\/skyrl\.whl\[jax,tinker\]$/,
  },
  {
    what: "the block before the machine",
    python: { package: "skyrl[{extras},aws]==1" },
    env: { RLCLI_SKYRL_PACKAGE: "/w" },
    requirement: /^skyrl\[jax,tinker,aws\]==1$/,
  },
  { what: "extras of its own", python: { package: "skyrl[tinker]==1" }, env: {}, requirement: /^skyrl\[tinker\]==1$/ },
])("installs $what", ({ python, env, requirement }) => {
  expect(recipeOf(EXTRAS, python, env).requirements).toEqual([expect.stringMatching(requirement)]);
});

test("index and arguments reach uv", async () => {
  const site = new FakeSite();
  const python = { index: "https://mirror.example/simple", arguments: ["--find-links", "/wheels"], version: "3.11" };
  await ensureEnvironment(recipeOf(EXTRAS, python, {}), { env: process.env });
  const calls = readFileSync(site.calls, "utf8");
  expect(calls).toMatch(/^venv --python 3\.11 /m);
  expect(calls).toMatch(
    /^pip install --python \S+ --default-index https:\/\/mirror\.example\/simple --find-links \/wheels skyrl/m,
  );
});

test("what it is made of is its name", () => {
  const folders = [
    recipeOf(EXTRAS, {}, {}),
    recipeOf(["fsdp", "tinker"], {}, {}),
    recipeOf(EXTRAS, { version: "3.13" }, {}),
  ].map((recipe) => environmentFolder(recipe, { RLCLI_DATA: "/data" }));
  expect(new Set(folders).size).toBe(3);
  expect(folders[0]).toMatch(/^\/data\/python\/skyrl-[0-9a-f]{12}$/);
});

test("uv is found on PATH, and is said to be missing with how to get it", async () => {
  expect(findUv({ RLCLI_UV: fakeUv, PATH: "" })).toBe(fakeUv);
  expect(findUv({ RLCLI_UV: "/nowhere/uv" })).toBeUndefined();
  await expect(ensureEnvironment(recipeOf(EXTRAS, {}, {}), { env: { RLCLI_UV: "/nowhere/uv" } })).rejects.toThrow(
    /RLCLI_UV names \/nowhere\/uv[\s\S]*pip install uv/,
  );
});
