/** Sandboxes started ahead: within the bounds, for whoever asks, once each, and out of the way of who is here already. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Budget } from "../../../src/environments/sandbox/budget.ts";
import type { SandboxOrder } from "../../../src/environments/sandbox/sandbox.ts";
import { WarmPool } from "../../../src/environments/sandbox/warm.ts";

const order = (image: string, memoryBytes = 1): SandboxOrder => ({
  label: "t",
  image,
  env: {},
  memoryBytes,
  pids: 1,
  network: "none",
  security: "compat",
  lifetimeMs: 1,
  startTimeoutMs: 1,
});

class Box {
  readonly image: string;
  readonly release: () => void;
  isRunning = true;
  closings = 0;
  constructor(image: string, release: () => void) {
    this.image = image;
    this.release = release;
  }
  async isAlive() {
    return this.isRunning;
  }
  async close() {
    this.closings += 1;
    this.isRunning = false;
    this.release();
  }
}

function poolOf(places: number, bytes = Number.POSITIVE_INFINITY) {
  const boxes: Box[] = [];
  const failing = new Set<string>();
  let most = 0;
  const budget: Budget = new Budget(places, bytes, () => pool.fill());
  const pool: WarmPool<Box> = new WarmPool(budget, async ({ image }, release) => {
    await turn();
    if (failing.has(image)) {
      release();
      throw new Error("no");
    }
    const box = new Box(image, release);
    boxes.push(box);
    most = Math.max(most, running().length);
    return box;
  });
  const running = () => boxes.filter(({ isRunning }) => isRunning).map(({ image }) => image);
  return { pool, budget, boxes, failing, running, most: () => most };
}

/** Until nothing moves any more. */
const settle = async () => {
  for (let left = 20; left > 0; left -= 1) await turn();
};

test("as many as there are places, first come first, and the next when one is given back", async () => {
  const { pool, running, boxes, most } = poolOf(2);
  const expected = ["a", "b", "c"].map((image) => pool.expect(order(image)));
  await settle();
  expect(running()).toEqual(["a", "b"]);
  const first = await pool.take(expected[0]!);
  expect(first?.image).toBe("a");
  await settle();
  // What was handed out keeps its place.
  expect(running()).toEqual(["a", "b"]);
  await first?.close();
  await settle();
  expect(running()).toEqual(["b", "c"]);
  expect(most()).toBe(2);
  pool.close();
  await settle();
  expect(running()).toEqual([]);
  expect(boxes.map(({ closings }) => closings)).toEqual([1, 1, 1]);
});

test("memory bounds them too", async () => {
  const { pool, running } = poolOf(9, 10);
  pool.expect(order("a", 6));
  pool.expect(order("b", 6));
  await settle();
  expect(running()).toEqual(["a"]);
});

test("each is handed out once; of a kind, any will do, whoever it was started for", async () => {
  const { pool, boxes } = poolOf(2);
  const expected = ["a", "a", "a", "a"].map((image) => pool.expect(order(image)));
  await settle();
  // The last asks first.
  const taken = await Promise.all([pool.take(expected[3]!), pool.take(expected[2]!)]);
  expect(new Set(taken).size).toBe(2);
  expect(taken.every((box) => box?.isRunning)).toBe(true);
  expect(await pool.take(expected[1]!)).toBeUndefined();
  expect(await pool.take(expected[1]!)).toBeUndefined();
  await taken[0]?.close();
  await settle();
  // One is still expected, and nothing was spent on it.
  expect(boxes.length).toBe(3);
  expect(await pool.take(expected[0]!)).toBe(boxes[2]);
});

test("they give way to who waits, the last expected first, and are not started again for it", async () => {
  const { pool, budget, running } = poolOf(2);
  const [a, b] = ["a", "b"].map((image) => pool.expect(order(image)));
  await settle();
  expect(budget.tryTake(1)).toBeUndefined();
  pool.yieldTo(1);
  const release = await budget.take(1);
  expect(running()).toEqual(["a"]);
  release();
  await settle();
  expect(running()).toEqual(["a"]);
  expect(await pool.take(b!)).toBeUndefined();
  expect((await pool.take(a!))?.image).toBe("a");
});

test("room is made for one that is larger than one of them", async () => {
  const { pool, budget, running } = poolOf(9, 10);
  for (const image of ["a", "b", "c"]) pool.expect(order(image, 3));
  await settle();
  pool.yieldTo(6);
  await budget.take(6);
  expect(running()).toEqual(["a"]);
});

test("nothing is started ahead while somebody waits", async () => {
  const { pool, budget, running } = poolOf(1);
  const release = await budget.take(1);
  const waiting = budget.take(1);
  pool.expect(order("a"));
  release();
  await settle();
  expect(running()).toEqual([]);
  (await waiting)();
  await settle();
  expect(running()).toEqual(["a"]);
});

test("one that is not asked for after all goes to another of its kind, or goes", async () => {
  const { pool, running, boxes } = poolOf(1);
  const [a, other] = ["a", "a"].map((image) => pool.expect(order(image)));
  const last = pool.expect(order("b"));
  await settle();
  pool.cancel(a!);
  expect(await pool.take(other!)).toBe(boxes[0]);
  await boxes[0]?.close();
  await settle();
  expect(running()).toEqual(["b"]);
  pool.cancel(last);
  pool.cancel(last);
  await settle();
  expect(running()).toEqual([]);
  expect(boxes.map(({ closings }) => closings)).toEqual([1, 1]);
});

test("one that ended meanwhile, or could not be started, is none", async () => {
  const { pool, budget, boxes, failing } = poolOf(2);
  failing.add("b");
  const [a, b] = ["a", "b"].map((image) => pool.expect(order(image)));
  await settle();
  boxes[0]!.isRunning = false;
  expect(await pool.take(a!)).toBeUndefined();
  expect(await pool.take(b!)).toBeUndefined();
  await settle();
  // Both places are free again.
  expect(budget.lacking(1).places).toBe(-1);
});
