/** Protobuf at the fake server's edge: it works on the JSON forms inside. */
import { decodePassMessage } from "../../src/tinker/proto/request.ts";
import { encodePassOutput } from "../../src/tinker/proto/result.ts";
import { encodeSampleMessage } from "../../src/tinker/proto/sample.ts";
import { tensorOf } from "../../src/tinker/proto/tensor.ts";
import { topkOf } from "../../src/tinker/proto/topk.ts";

/** The JSON body that means the same as a ForwardBackwardRequest. */
export function readPassBody(bytes: Uint8Array): Record<string, any> {
  const decoded = decodePassMessage(bytes);
  if (!decoded.ok) throw new Error(decoded.error);
  const { modelId, seqId, lossName, lossConfig, forwardOnly, data } = decoded.value;
  const pass = {
    loss_fn: lossName,
    loss_fn_config: lossConfig,
    data: data.map(({ input, lossInputs }) => ({
      model_input: {
        chunks: input.map((c) => ({ type: c.type, tokens: c.type === "encoded_text" ? [...c.tokens] : [] })),
      },
      loss_fn_inputs: Object.fromEntries(
        Object.entries(lossInputs).map(([name, { data, dtype, shape }]) => [name, { data: [...data], dtype, shape }]),
      ),
    })),
  };
  return {
    model_id: modelId,
    ...(seqId === 0 ? {} : { seq_id: seqId }),
    [forwardOnly ? "forward_input" : "forward_backward_input"]: pass,
  };
}

/** A result of a pass or a sample as its message; undefined for any other answer. */
export function writeResult(answer: any): Uint8Array | undefined {
  if (answer?.loss_fn_outputs) {
    const outputs = answer.loss_fn_outputs.map((output: any) =>
      Object.fromEntries(Object.entries(output).map(([name, t]: any) => [name, tensorOf(Float32Array.from(t.data))])),
    );
    return encodePassOutput({ outputType: "pkg:scalar", outputs, metrics: answer.metrics });
  }
  if (!answer?.sequences) return undefined;
  const prompt = answer.prompt_logprobs as (number | null)[] | null;
  return encodeSampleMessage({
    sequences: answer.sequences.map((s: any) => ({
      stopReason: s.stop_reason,
      tokens: Int32Array.from(s.tokens),
      logprobs: Float32Array.from(s.logprobs),
    })),
    promptCacheHitTokens: 0,
    ...(prompt ? { promptLogprobs: Float32Array.from(prompt, (v) => v ?? Number.NaN) } : {}),
    ...(answer.topk_prompt_logprobs ? { topkPrompt: topkOf(answer.topk_prompt_logprobs) } : {}),
  });
}
