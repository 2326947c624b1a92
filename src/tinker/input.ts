/** Inputs: tokens, and images between them, as the chunks of the wire. */
import type { InputImage } from "./data.ts";
import type { InputChunk } from "./proto/request.ts";

export interface ModelInput {
  readonly input: Int32Array;
  readonly images?: readonly InputImage[];
}

/** Positions of the input: tokens, and what images take. */
export function inputLength({ input, images = [] }: ModelInput): number {
  return images.reduce((sum, { expectedTokens }) => sum + expectedTokens, input.length);
}

/** [N] or, with several targets a position, [N, K]. */
export function tensorShape(count: number, length: number): number[] {
  return count === length ? [count] : [length, count / length];
}

/** Bytes of the images. */
export function imageBytes({ images = [] }: ModelInput): number {
  return images.reduce((sum, { data }) => sum + data.length, 0);
}

/** In order. Without images it is one chunk of text. */
export function chunksOf({ input, images = [] }: ModelInput): readonly InputChunk[] {
  if (images.length === 0) return [{ type: "encoded_text", tokens: input }];
  const chunks: InputChunk[] = [];
  let from = 0;
  const text = (to: number) => {
    if (to > from) chunks.push({ type: "encoded_text", tokens: input.slice(from, to) });
    from = Math.max(from, to);
  };
  // Stable: images at one place stay in the order given.
  for (const { at, data, format, expectedTokens } of [...images].sort((a, b) => a.at - b.at)) {
    text(at);
    chunks.push({ type: "image", data, format, expectedTokens });
  }
  text(input.length);
  return chunks;
}

/** What is wrong with the images, in words. */
export function imageFault({ input, images = [] }: ModelInput): string | undefined {
  for (const { at, data, expectedTokens } of images) {
    if (!Number.isInteger(at) || at < 0 || at > input.length)
      return `an image stands at ${at} of ${input.length} tokens`;
    if (!Number.isInteger(expectedTokens) || expectedTokens < 1) return `an image takes ${expectedTokens} positions`;
    if (data.length === 0) return "an image has no bytes";
  }
  return undefined;
}
