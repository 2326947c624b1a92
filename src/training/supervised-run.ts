/** A supervised run at work: its rows besides. */
import type { RunOrder, SupervisedSettings } from "../run-record.ts";
import { Batches } from "./batches.ts";
import type { RunRecord } from "./record.ts";
import type { RowStore } from "./rows.ts";
import { Run, type TrainingDeps } from "./run.ts";

export class SupervisedRun extends Run<SupervisedSettings> {
  readonly rows: RowStore;

  constructor(order: RunOrder<SupervisedSettings>, deps: TrainingDeps, record: RunRecord, rows: RowStore) {
    super(order, deps, record, new Batches(rows.training, (row) => rows.tokensOf(row), order.settings));
    this.rows = rows;
  }

  evaluatesAt(step: number): boolean {
    const { eval_every } = this.order;
    return this.rows.heldOut.length > 0 && (step === this.total || (eval_every > 0 && step % eval_every === 0));
  }
}
