/**
 * The one door to `@jax-js/jax`. On Node the library needs a `navigator` before it is evaluated (it reads its user agent
 * while choosing tiles), and picks its WebAssembly device only after `init`. Everything else of this folder receives the
 * loaded module as a value, so that importing a file never starts the library.
 */
export type Jax = typeof import("@jax-js/jax");
export type JaxArray = import("@jax-js/jax").Array;
/** Arrays by tensor name. jax-js takes such records as trees. */
export type ArrayTree = Record<string, JaxArray>;

let loading: Promise<Jax> | undefined;

/** Loads the library once a thread and starts its WebAssembly device. */
export function loadJax(): Promise<Jax> {
  loading ??= load();
  return loading;
}

async function load(): Promise<Jax> {
  if (!("navigator" in globalThis))
    Object.defineProperty(globalThis, "navigator", {
      value: { hardwareConcurrency: 1, userAgent: "node" },
      configurable: true,
    });
  const jax = await import("@jax-js/jax");
  await jax.init("wasm");
  jax.defaultDevice("wasm");
  return jax;
}

/** A float32 array of a shape, copied from `data`. */
export function arrayOf(jax: Jax, data: Float32Array, shape: readonly number[]): JaxArray {
  // jax-js may keep a view of what it is given while work is pending; weights here are reused, so it gets a copy.
  return jax.numpy.array(data.slice()).reshape([...shape]);
}

/** A scalar argument of a compiled function: passed in, so that a new value does not compile anew. */
export function scalarOf(jax: Jax, value: number): JaxArray {
  return jax.numpy.array(new Float32Array([value])).reshape([]);
}
