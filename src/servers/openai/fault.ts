/** What is wrong with a request, in the shape that OpenAI's clients raise as their errors. */

export interface FaultFields {
  readonly status: number;
  readonly message: string;
  readonly type?: string;
  /** Of the request's body. */
  readonly param?: string | undefined;
  readonly code?: string | undefined;
  readonly retryAfterSeconds?: number;
}

export class OpenAiFault extends Error {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  readonly #fields: FaultFields;

  constructor(fields: FaultFields) {
    super(fields.message);
    this.name = "OpenAiFault";
    this.status = fields.status;
    this.retryAfterSeconds = fields.retryAfterSeconds;
    this.#fields = fields;
  }

  get body(): object {
    const { status, message, param, code } = this.#fields;
    const type = this.#fields.type ?? (status >= 500 ? "server_error" : "invalid_request_error");
    return { error: { message, type, param: param ?? null, code: code ?? null } };
  }
}

/** A value of the body that cannot be used: 400. */
export function refuse(param: string, message: string, code?: string): never {
  throw new OpenAiFault({ status: 400, message, param, code });
}
