import { beforeEach, describe } from "vitest";
import { type MemoryState, MemoryStateStore, newMemoryState } from "./memory.ts";
import { storeSuite } from "./suite.ts";

describe("state in memory, as engine tests use it", () => {
  let state: MemoryState;
  beforeEach(() => {
    state = newMemoryState();
  });
  storeSuite(() => ({ open: (now) => new MemoryStateStore(state, now) }));
});
