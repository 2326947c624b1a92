/** Reading fields of a JSON body, with 422 for what is missing or of the wrong type. Unknown fields are ignored. */
import { invalid } from "./errors.ts";

type Loc = readonly (string | number)[];

/** One object of a body and where it stands. */
export class Fields {
  readonly #value: Readonly<Record<string, unknown>>;
  readonly #loc: Loc;

  constructor(value: unknown, loc: Loc = []) {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      invalid(loc, "Input should be an object", value);
    this.#value = value as Readonly<Record<string, unknown>>;
    this.#loc = loc;
  }

  /** Where the object stands. */
  get place(): Loc {
    return this.#loc;
  }

  loc(key: string): Loc {
    return [...this.#loc, key];
  }

  keys(): readonly string[] {
    return Object.keys(this.#value);
  }

  raw(key: string): unknown {
    return this.#value[key];
  }

  has(key: string): boolean {
    return this.#value[key] !== undefined && this.#value[key] !== null;
  }

  /** Refuses the field with a 422. */
  reject(key: string, msg: string): never {
    return invalid(this.loc(key), msg, this.#value[key]);
  }

  string(key: string): string {
    const value = this.#value[key];
    return typeof value === "string" ? value : this.reject(key, "Input should be a string");
  }

  optionalString(key: string): string | undefined {
    return this.has(key) ? this.string(key) : undefined;
  }

  /** Finite. */
  number(key: string): number {
    const value = this.#value[key];
    return typeof value === "number" && Number.isFinite(value)
      ? value
      : this.reject(key, "Input should be a finite number");
  }

  optionalNumber(key: string): number | undefined {
    return this.has(key) ? this.number(key) : undefined;
  }

  /** A whole number of at least `least`. */
  integer(key: string, least = 0): number {
    const value = this.number(key);
    return Number.isSafeInteger(value) && value >= least
      ? value
      : this.reject(key, `Input should be a whole number of at least ${least}`);
  }

  optionalInteger(key: string, least = 0): number | undefined {
    return this.has(key) ? this.integer(key, least) : undefined;
  }

  optionalBoolean(key: string): boolean | undefined {
    if (!this.has(key)) return undefined;
    const value = this.#value[key];
    return typeof value === "boolean" ? value : this.reject(key, "Input should be true or false");
  }

  object(key: string): Fields {
    return new Fields(this.#value[key], this.loc(key));
  }

  optionalObject(key: string): Fields | undefined {
    return this.has(key) ? this.object(key) : undefined;
  }

  array(key: string): readonly unknown[] {
    const value = this.#value[key];
    return Array.isArray(value) ? value : this.reject(key, "Input should be a list");
  }

  objects(key: string): readonly Fields[] {
    return this.array(key).map((value, i) => new Fields(value, [...this.loc(key), i]));
  }

  /** Strings by name, or null where the field is absent. */
  stringMap(key: string): Readonly<Record<string, string>> | null {
    const fields = this.optionalObject(key);
    return fields ? Object.fromEntries(fields.keys().map((name) => [name, fields.string(name)])) : null;
  }

  /** Whole numbers, each from 0 to below `limit`. */
  tokens(key: string, limit: number): number[] {
    const values = this.array(key);
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= limit)
        invalid([...this.loc(key), i], `Input should be a token id from 0 to ${limit - 1}`, value);
    }
    return values as number[];
  }

  finiteNumbers(key: string): readonly number[] {
    const values = this.array(key);
    for (let i = 0; i < values.length; i++)
      if (typeof values[i] !== "number" || !Number.isFinite(values[i]))
        invalid([...this.loc(key), i], "Input should be a finite number", values[i]);
    return values as readonly number[];
  }
}
