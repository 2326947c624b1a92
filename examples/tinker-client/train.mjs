// Trains a few steps on any Tinker server, samples before and after, and goes on from what it saved.
// TINKER_BASE_URL and TINKER_API_KEY say where; see docs/guide/tinker-client.md.
import { TinkerClient, TinkerError } from "rlcli/tinker";

const client = new TinkerClient({
  baseUrl: process.env.TINKER_BASE_URL ?? "http://127.0.0.1:8000",
  apiKey: process.env.TINKER_API_KEY,
});
const text = "rlcli trains language models.";

/** builtin:tiny reads bytes; for other models use their tokenizer. */
const tokens = Int32Array.from(Buffer.from(text));

/** Position i of the input predicts target i; a weight says how much a position counts. */
const datum = {
  input: tokens.subarray(0, -1),
  lossInputs: {
    target_tokens: tokens.slice(1),
    weights: new Float32Array(tokens.length - 1).fill(1 / (tokens.length - 1)),
  },
};

/** What the model makes of the beginning of the text. */
async function continuation(model) {
  const sampler = await (await model.sampler()).result();
  const params = { maxTokens: 16, temperature: 0, stop: [] };
  const future = await sampler.sample({ prompt: tokens.slice(0, 12), params });
  const { sequences } = await future.result();
  return Buffer.from(sequences[0].tokens).toString();
}

try {
  const [{ modelName }] = await client.capabilities();
  const session = await client.createSession({ tags: ["example"] });
  const model = await session.createModel({ baseModel: modelName, loraRank: 8, seed: 1 });
  console.log("before:", JSON.stringify(await continuation(model)));

  for (let step = 1; step <= 30; step += 1) {
    // Both are submitted before either is awaited: the server does not wait for us.
    const pass = await model.forwardBackward([datum], { name: "cross_entropy" });
    const update = await model.optimStep({ learning_rate: 0.02 });
    const { outputs } = await pass.result();
    await update.result();
    const loss = -outputs[0].logprobs.reduce((a, b) => a + b, 0) / outputs[0].logprobs.length;
    if (step % 10 === 0) console.log(`step ${step}: loss ${loss.toFixed(3)} nats`);
  }
  console.log("after:", JSON.stringify(await continuation(model)));

  const name = `example-${Date.now()}`;
  const path = await (await model.saveWeights(name)).result();
  const copy = await session.createModelFrom(path, { optimizer: true });
  console.log(`saved ${path}, went on as ${copy.id}`);
  await Promise.all([model.unload(), copy.unload()]);
  await client.deleteCheckpoint(path);
  await session.finish();
} catch (error) {
  if (!(error instanceof TinkerError)) throw error;
  console.error(`${error.kind}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
