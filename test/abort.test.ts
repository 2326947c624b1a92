/** Signals for the length of some work: they fire though nobody holds them, and leave nothing behind. */
import { getEventListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { withDeadline, withStop } from "../src/abort.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** As a request waits: only its own listener knows the signal. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

async function whileCollecting<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(collect, 10);
  return work.finally(() => clearInterval(timer));
}

test("a deadline passes though the collector runs all the time", async () => {
  const signal = new AbortController().signal;
  const late = withDeadline(100, signal, untilAborted);
  await expect(whileCollecting(late)).rejects.toMatchObject({ name: "TimeoutError" });
});

test("the outer signal ends the work for its own reason, before or while it runs", async () => {
  const outer = new AbortController();
  const running = withDeadline(60_000, outer.signal, untilAborted);
  outer.abort(new Error("the user left"));
  await expect(running).rejects.toThrow("the user left");
  await expect(withDeadline(60_000, outer.signal, async (limit) => limit.throwIfAborted())).rejects.toThrow(
    "the user left",
  );
});

test("work that ends in time gives its value, and nothing stays at the outer signal", async () => {
  const outer = new AbortController();
  let inner: AbortSignal | undefined;
  const value = await withDeadline(20, outer.signal, async (limit) => {
    inner = limit;
    expect(getEventListeners(outer.signal, "abort").length).toBe(1);
    return 7;
  });
  await sleep(60);
  expect([value, inner?.aborted, getEventListeners(outer.signal, "abort").length]).toEqual([7, false, 0]);
});

test("a limit beyond what a timer can wait does not pass at once", async () => {
  await withDeadline(2 ** 40, undefined, async (limit) => {
    await sleep(20);
    expect(limit.aborted).toBe(false);
  });
});

test("what work stops itself does not touch the outer signal", async () => {
  const outer = new AbortController();
  await withStop(outer.signal, async (stop) => stop.abort());
  expect(outer.signal.aborted).toBe(false);
});
