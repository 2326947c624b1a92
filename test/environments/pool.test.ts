import { expect, test } from "vitest";
import { Pool, type Pooled } from "../../src/environments/pool.ts";

const helper = (close: () => Promise<void> = async () => {}): Pooled & { isUsable: boolean } => ({
  isUsable: true,
  close,
});

test("the place of a helper that cannot be made is free for the next", async () => {
  let made = 0;
  const pool = new Pool(1, () => {
    made += 1;
    if (made === 1) throw new Error("out of memory");
    return helper();
  });
  await expect(pool.use(async () => 1)).rejects.toThrow("out of memory");
  expect(await pool.use(async () => 2)).toBe(2);
});

test("so is that of one that broke and cannot be closed", async () => {
  const pool = new Pool(1, () => helper(() => Promise.reject(new Error("no such process"))));
  const broken = pool.use(async (used) => {
    used.isUsable = false;
  });
  const waiting = pool.use(async () => 2);
  await expect(broken).rejects.toThrow("no such process");
  expect(await waiting).toBe(2);
});

test("a helper is used by one at a time, in order of asking", async () => {
  const pool = new Pool(1, helper);
  const order: string[] = [];
  const work = (name: string) => async () => {
    order.push(`${name} begins`);
    await Promise.resolve();
    order.push(`${name} ends`);
  };
  await Promise.all([pool.use(work("a")), pool.use(work("b"))]);
  expect(order).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});
