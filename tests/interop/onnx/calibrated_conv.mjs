// The work of chromium.mjs, the same in Node and in a page: a conv net to static int8, its scales found by running it.
import { drawnPage } from './drawn_pages.mjs';

const shape = [1, 3, 96, 128];
const input_tensors = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false };
const config = {
  layer_type_quant_config: {
    Conv2d: { weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true }, input_tensors },
  },
  global_quant_config: {},
  exclude: [],
};

/** A target that keeps its only file in memory. */
function memoryTarget() {
  const parts = [];
  return {
    write: async () => new WritableStream({ write: (part) => void parts.push(part.slice()) }),
    bytes: async () => new Uint8Array(await new Blob(parts).arrayBuffer()),
  };
}

/**
 * `{ bytes, scales }` of `model`, the bytes of an ONNX file, with `runtime`: the static int8 file, and the scale and zero
 * point of each layer's input. `provider`: the execution provider; the two runtimes share a table of them in one process.
 */
export async function calibrateConv({ createQuantizer, captureActivations, runtime, provider, model, threads }) {
  const feeds = [2, 3].map((seed) => ({ x: new runtime.Tensor('float32', drawnPage(shape, seed), shape) }));
  const sessionOptions = { executionProviders: [provider], logSeverityLevel: 3, intraOpNumThreads: 1 };
  const quantizer = await createQuantizer({ threads });
  try {
    const opened = await quantizer.open(model);
    const calibration = captureActivations(runtime, opened, feeds, { sessionOptions });
    const observers = new Map();
    for await (const { layer, role, data, shape: of } of calibration) {
      if (role !== 'input') continue;
      if (!observers.has(layer)) observers.set(layer, quantizer.createObserver(input_tensors));
      observers.get(layer).update({ data, shape: of });
    }
    const scales = [...observers].map(([layer, observer]) => {
      const { scale, zeroPoint } = observer.finish();
      observer[Symbol.dispose]();
      return { layer, scale: scale[0], zeroPoint: zeroPoint[0] };
    });
    const target = memoryTarget();
    const { totals } = await quantizer.quantizeModel(opened, config, { target, onnx: { qdq: true }, calibration });
    await opened.close();
    return { bytes: await target.bytes(), scales, quantized: totals.quantized };
  } finally {
    await quantizer[Symbol.asyncDispose]();
  }
}
