// The work that every host does: a model in memory to int4 groups of 128 in memory, and a tensor in this thread. Whatever
// the host and its number of workers, the digest of the file must be the same.

/** Hexadecimal SHA-256. */
export async function digest(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A target that keeps its files in memory, by name. */
function memoryTarget(files) {
  return {
    async write(name) {
      const parts = [];
      return new WritableStream({
        write: (part) => void parts.push(part.slice()),
        close: async () => void files.set(name, new Uint8Array(await new Blob(parts).arrayBuffer())),
      });
    },
  };
}

/** `{ sha256, sqnr, codes, library }` of `model`, the bytes of a safetensors file. */
export async function work(createQuantizer, model, options) {
  const quantizer = await createQuantizer(options);
  try {
    const { codes } = quantizer.quantize(
      { data: Float32Array.of(-1, -0.5, 0.25, 1), shape: [1, 4] },
      { dtype: 'int8', qscheme: 'per_tensor', symmetric: true },
    );
    const opened = await quantizer.open(model);
    const files = new Map();
    const { totals } = await quantizer.quantizeModel(opened, 'int4_wo_128', { target: memoryTarget(files) });
    await opened.close();
    const [weights] = [...files].filter(([name]) => name.endsWith('.safetensors'));
    return {
      sha256: await digest(weights[1]),
      quantized: totals?.quantized ?? null,
      codes: Array.from(codes),
      library: quantizer.version.library,
    };
  } finally {
    await quantizer[Symbol.asyncDispose]();
  }
}
