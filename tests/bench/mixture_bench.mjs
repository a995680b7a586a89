// The cost of calibrating a mixture of experts, against a dense model with as many active weights: processor time of each in one thread, in
// alternating runs. Both have the same attention; a token's experts together are as wide as the dense feed-forward.
//   node tests/bench/mixture_bench.mjs [--json] [--only PIPELINE] [--runs N] [--experts N] [--tokens N]
// A row a pipeline: the least seconds of each model, their ratio, and the ratios of single turns.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createQuantizer } from '../../dist/node.js';
import { decoderTensors, writeDecoder } from '../node/written_decoder.mjs';
import { noise } from '../node/written_model.mjs';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean' },
    only: { type: 'string', default: '' },
    runs: { type: 'string', default: '3' },
    experts: { type: 'string', default: '8' },
    tokens: { type: 'string', default: '16384' },
  },
});
const sizes = { vocabulary: 512, hidden: 256, inner: 256, layers: 2, heads: 4, chosen: 2 };
const length = 256;

const pipelines = {
  gptq: (quantizer) => ({ ...quantizer.presetConfig('int4_wo_32'), algo_config: [{ name: 'gptq' }] }),
  best: (quantizer) => quantizer.presetConfig('int4_wo_32', { best: true }),
};

/** Writes a model into `folder`; a Llama without experts is as wide as the experts of a token together. */
function writeModel(folder, experts) {
  const inner = experts > 0 ? sizes.inner : sizes.chosen * sizes.inner;
  const own = { ...sizes, inner, experts, positions: length };
  return writeDecoder(folder, decoderTensors(own), own);
}

/** Tokens that follow each other in some ways more often than in others. */
function tokens() {
  const rows = Math.ceil(Number(options.tokens) / length);
  const data = Int32Array.from(noise(rows * length, 7), (value) => Math.floor((value + 1) * 24));
  for (let i = 1; i < data.length; ++i) data[i] = (data[i] + 5 * data[i - 1]) % sizes.vocabulary;
  return { data, shape: [rows, length] };
}

async function secondsOf(quantizer, source, config, target) {
  const model = await quantizer.open(source);
  const before = process.cpuUsage();
  await quantizer.quantizeModel(model, config, {
    target,
    format: 'fake-quantized',
    calibration: { tokens: given },
    overwrite: true,
  });
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const given = tokens();
const work = mkdtempSync(join(tmpdir(), 'mixture-bench-'));
const quantizer = await createQuantizer({ threads: 0 });
const rows = [];
try {
  const dense = writeModel(join(work, 'dense'), 0);
  const mixture = writeModel(join(work, 'mixture'), Number(options.experts));
  for (const [name, of] of Object.entries(pipelines)) {
    if (!name.includes(options.only)) continue;
    const config = { ...of(quantizer), exclude: ['lm_head', '*.gate'] };
    const seconds = { dense: [], mixture: [] };
    for (let run = 0; run < Number(options.runs); ++run) {
      seconds.dense.push(await secondsOf(quantizer, dense, config, join(work, 'out')));
      seconds.mixture.push(await secondsOf(quantizer, mixture, config, join(work, 'out')));
    }
    const ratios = seconds.mixture.map((mixed, run) => mixed / seconds.dense[run]);
    const least = { dense: Math.min(...seconds.dense), mixture: Math.min(...seconds.mixture) };
    rows.push({ pipeline: name, ...least, ratio: least.mixture / least.dense, ratios });
  }
} finally {
  await quantizer[Symbol.asyncDispose]();
  rmSync(work, { recursive: true });
}
if (options.json) {
  process.stdout.write(`${JSON.stringify({ experts: Number(options.experts), tokens: given.data.length, rows })}\n`);
} else {
  for (const { pipeline, dense, mixture, ratio, ratios } of rows)
    process.stdout.write(
      `${pipeline.padEnd(6)} dense ${dense.toFixed(2)} s  mixture ${mixture.toFixed(2)} s  ratio ${ratio.toFixed(2)}  (${ratios.map((each) => each.toFixed(2)).join(' ')})\n`,
    );
}
