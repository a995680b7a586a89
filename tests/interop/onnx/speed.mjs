// How fast onnxruntime-node and onnxruntime-web compute each form of a product and of a convolution on one thread: processor
// time of one run, the least of several, beside float. Prints the tables of web/docs/formats.md.
//   node tests/interop/onnx/speed.mjs [MODEL.onnx...]
// With models, which must take one float input, their int8 and int8_dynamic files are timed instead.
// The runtimes come from npm (peers.mjs). Needs dist/.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { captureActivations } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { graph, model, node, noise, tensor } from '../../node/onnx/model.mjs';
import { main } from '../../setup/command.mjs';
import { ort, versionOf, web } from './peers.mjs';

const runs = 12;
const size = 2048;
const uint8 = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: false };
const channels = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const fixed = (values) => ({ config: { global_quant_config: { weight: channels, ...values } }, isStatic: true });

const products = {
  int8: { config: 'int8' },
  'int8 --accuracy-level 4': { config: 'int8', onnx: { accuracyLevel: 4 } },
  'int8 --qdq': { config: 'int8', onnx: { qdq: true } },
  int8_dynamic: { config: 'int8_dynamic' },
  int4_wo_32: { config: 'int4_wo_32' },
  'int4_wo_32 --accuracy-level 1': { config: 'int4_wo_32', onnx: { accuracyLevel: 1 } },
  'int4_wo_32 --accuracy-level 4': { config: 'int4_wo_32', onnx: { accuracyLevel: 4 } },
  'int4_wo_32 --qdq': { config: 'int4_wo_32', onnx: { qdq: true } },
};
const convolutions = {
  int8: { config: 'int8' },
  'int8 --qdq': { config: 'int8', onnx: { qdq: true } },
  int8_dynamic: { config: 'int8_dynamic' },
  'static inputs': fixed({ input_tensors: uint8 }),
  'static inputs and outputs': fixed({ input_tensors: uint8, output_tensors: uint8 }),
};

const shapeOf = (shape) => shape.reduce((a, b) => a * b, 1);
const input = (runtime, shape) => new runtime.Tensor('float32', noise(shapeOf(shape), 5), shape);

function one(type, weightShape, shapes, attributes) {
  const weight = tensor('w', 'F32', weightShape, noise(shapeOf(weightShape), 3));
  const nodes = [node(type, ['x', 'w'], ['y'], { name: '/layer/op', ...attributes })];
  return model(
    graph({ nodes, tensors: [weight], inputs: [['x', 'F32', shapes[0]]], outputs: [['y', 'F32', shapes[1]]] }),
  );
}

/** Milliseconds of processor time of each file in turn, on this runtime. */
async function times(runtime, paths, shape, inputName) {
  const options = {
    intraOpNumThreads: 1,
    logSeverityLevel: 4,
    ...(runtime === web && { executionProviders: ['wasm'] }),
  };
  const sessions = [];
  for (const path of paths)
    sessions.push(await runtime.InferenceSession.create(new Uint8Array(readFileSync(path)), options));
  const best = paths.map(() => Number.POSITIVE_INFINITY);
  const feeds = { [inputName]: input(runtime, shape) };
  for (let run = -1; run < runs; ++run)
    for (const [i, session] of sessions.entries()) {
      const begin = process.cpuUsage();
      await session.run(feeds);
      const { user, system } = process.cpuUsage(begin);
      if (run >= 0) best[i] = Math.min(best[i], (user + system) / 1000);
    }
  for (const session of sessions) await session.release();
  return best;
}

async function table(quantizer, folder, title, source, shapes, forms, inputName = 'x') {
  const paths = [join(folder, 'float.onnx')];
  writeFileSync(paths[0], source);
  for (const { config, onnx = {}, isStatic } of Object.values(forms)) {
    const opened = await quantizer.open(paths[0]);
    const target = join(folder, `${paths.length}.onnx`);
    const feeds = [{ [inputName]: input(ort, shapes[0]) }];
    const calibration = isStatic ? captureActivations(ort, opened, feeds) : undefined;
    await quantizer.quantizeModel(opened, config, { target, onnx, calibration, overwrite: true });
    await opened.close();
    paths.push(target);
  }
  const columns = [];
  for (const runtime of [ort, web])
    for (const shape of shapes) columns.push(await times(runtime, paths, shape, inputName));
  const heads = ['Node', 'web'].flatMap((name) => shapes.map((shape) => `${name}, ${shape.join(' x ')}`));
  process.stdout.write(`\n| ${title} | ${heads.join(' | ')} |\n|---|${heads.map(() => '---|').join('')}\n`);
  for (const [i, name] of ['float', ...Object.keys(forms)].entries()) {
    const cells = columns.map((column) => `${column[i].toFixed(2)} (${(column[i] / column[0]).toFixed(2)})`);
    process.stdout.write(`| ${name} | ${cells.join(' | ')} |\n`);
  }
}

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-speed-'));
  const quantizer = await createQuantizer({ threads: 1 });
  process.stdout.write(
    `Processor time in ms of one thread (times float's): onnxruntime-node ${versionOf('onnxruntime-node')}, onnxruntime-web ${versionOf('onnxruntime-web')}\n`,
  );
  try {
    const given = process.argv.slice(2);
    for (const path of given) {
      const session = await ort.InferenceSession.create(path);
      const { name, shape } = session.inputMetadata[0];
      const known = shape.map((extent, axis) =>
        typeof extent === 'number' && extent > 0 ? extent : axis === 0 ? 1 : 224,
      );
      await session.release();
      const { int8, int8_dynamic } = products;
      await table(quantizer, folder, basename(path), readFileSync(path), [known], { int8, int8_dynamic }, name);
    }
    if (given.length > 0) return 0;
    const matrix = one(
      'MatMul',
      [size, size],
      [
        ['n', size],
        ['n', size],
      ],
    );
    await table(
      quantizer,
      folder,
      `MatMul ${size} x ${size}`,
      matrix,
      [
        [1, size],
        [64, size],
      ],
      products,
    );
    const [feature, kernel] = [
      [1, 64, 40, 40],
      [64, 64, 3, 3],
    ];
    const conv = one('Conv', kernel, [feature, feature], { pads: [1, 1, 1, 1], kernel_shape: [3, 3] });
    await table(quantizer, folder, 'Conv 64 x 64 x 3 x 3', conv, [feature], convolutions);
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
  return 0;
});
