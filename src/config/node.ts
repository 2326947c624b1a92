/** One block of a loaded spec. */
import type { Address, KindName } from "../address.ts";
import type { SourceRange } from "../diagnostic.ts";
import type { Reference, SpecAttribute, SpecNode } from "../spec.ts";
import type { ValueObject } from "../value.ts";
import { type Block, valuePlace } from "./blocks.ts";
import type { Normalised } from "./normalise.ts";
import type { Source } from "./source.ts";

export class LoadedNode implements SpecNode {
  readonly address: Address;
  readonly kind: KindName;
  readonly name: string;
  readonly body: ValueObject;
  readonly attributes: ReadonlyMap<string, SpecAttribute>;
  readonly references: readonly Reference[];
  readonly range: SourceRange;
  readonly #block: Block;
  readonly #sources: readonly Source[];

  constructor(block: Block, normalised: Normalised, references: readonly Reference[], sources: readonly Source[]) {
    const { key } = block.entry;
    this.address = block.address;
    this.kind = block.kind;
    this.name = block.name;
    this.body = normalised.body;
    this.attributes = normalised.attributes;
    this.references = references;
    this.range = key.source.range(key.span);
    this.#block = block;
    this.#sources = sources;
    Object.freeze(this);
  }

  rangeOf(path: string): SourceRange {
    const { source, span } = valuePlace(this.#block, path);
    return source.range(span);
  }

  lineOf(range: SourceRange): string {
    return this.#sources.find((source) => source.file === range.file)?.line(range.start.line) ?? "";
  }
}
