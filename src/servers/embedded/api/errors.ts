/** Refusals of the API: a status and FastAPI's `{"detail": …}` body, which clients of this protocol expect. */

export interface FieldProblem {
  readonly type: string;
  /** Names and indexes from the body's root. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input?: unknown;
}

export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;
  readonly detail: string | readonly FieldProblem[];
  constructor(status: number, detail: string | readonly FieldProblem[]) {
    super(typeof detail === "string" ? detail : detail.map(({ msg }) => msg).join("; "));
    this.status = status;
    this.detail = detail;
  }
}

export function refuse(status: number, detail: string): never {
  throw new HttpError(status, detail);
}

/** A 422 for one field. The offending value is echoed only if it is short. */
export function invalid(loc: readonly (string | number)[], msg: string, input?: unknown): never {
  const isShort = input === null || ["string", "number", "boolean"].includes(typeof input);
  const type = input === undefined ? "missing" : "value_error";
  throw new HttpError(422, [{ type, loc: ["body", ...loc], msg, ...(isShort ? { input } : {}) }]);
}
