import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Turns } from "../../../src/servers/embedded/turns.ts";
import { bytesOf, startTestServer, stepBody, wireDatum } from "./server.ts";

describe("turns", () => {
  test("a model's operations keep their order, and nobody waits for more than one of each other model", () => {
    const arrivals = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.boolean()), { maxLength: 60 });
    fc.assert(
      fc.property(arrivals, (steps) => {
        const turns = new Turns<readonly [string, number]>();
        const waiting = new Map<string, { since: number; ids: number[] }>();
        const servedAt: [string, number][] = [];
        const take = () => {
          const [model, id] = turns.take()!;
          const queue = waiting.get(model)!;
          expect(id).toBe(queue.ids.shift());
          const between = servedAt.filter(([, at]) => at >= queue.since).map(([other]) => other);
          expect(new Set(between).size).toBe(between.length);
          expect(between).not.toContain(model);
          servedAt.push([model, servedAt.length]);
          if (queue.ids.length === 0) waiting.delete(model);
          else queue.since = servedAt.length;
        };
        steps.forEach(([model, takes], id) => {
          turns.add(model, [model, id]);
          const queue = waiting.get(model) ?? { since: servedAt.length, ids: [] };
          queue.ids.push(id);
          waiting.set(model, queue);
          if (takes) take();
        });
        while (!turns.isEmpty) take();
        expect(turns.take()).toBeUndefined();
        expect(waiting.size).toBe(0);
      }),
    );
  });
});

describe("a busy server", () => {
  test("trains a newcomer and samples while another model's long queue is worked off", async () => {
    const server = await startTestServer({ bodyLimitBytes: 64_000_000 });
    const [busy, newcomer] = [await server.newModel(), await server.newModel()];
    const text = "the quick brown fox jumps over the lazy dog, again and again and again and again";
    const pass = (model: string, seq_id: number, rows: number) => ({
      model_id: model,
      seq_id,
      forward_backward_input: {
        data: Array.from({ length: rows }, () => wireDatum(bytesOf(text))),
        loss_fn: "cross_entropy",
      },
    });
    await server.run("/forward_backward", pass(busy.model, 1, 64));
    await server.run("/forward_backward", pass(newcomer.model, 1, 1));
    const order: string[] = [];
    const note = async (name: string, submitted: { request_id: string }) => {
      await server.outcome(submitted);
      order.push(name);
    };
    const queue = [];
    // Number 2 comes last and lets all the others go at once.
    for (const seq of [3, 4, 5, 6, 7, 2])
      queue.push(note("busy", await server.post("/forward_backward", pass(busy.model, seq, 48))));
    const step = note("newcomer", await server.post("/optim_step", stepBody(newcomer.model, 2)));
    const prompt = { chunks: [{ type: "encoded_text", tokens: bytesOf("ab") }] };
    const sample = note(
      "sample",
      await server.post("/asample", { base_model: "builtin:tiny", prompt, sampling_params: { max_tokens: 8 } }),
    );
    await Promise.all([...queue, step, sample]);
    expect(order.indexOf("newcomer")).toBeLessThan(4);
    expect(order.indexOf("sample")).toBeLessThan(4);
    await server.server.close();
  });
});
