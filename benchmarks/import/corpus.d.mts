export interface Sample {
  readonly text: string;
  readonly values: readonly { readonly type: string; readonly value: string }[];
  readonly decoys: readonly string[];
}
export interface TypeScore {
  planted: number;
  gone: number;
  named: number;
  wrong: number;
}
export function corpus(count: number, seed?: number): Sample[];
export function score(samples: readonly Sample[], redacted: readonly string[]): Record<string, TypeScore>;
