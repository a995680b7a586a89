// npm run test:calibrated [-- FAMILY...]: mixtures, hybrids, latent attention, tied heads, encoder-decoders, biases and weights stored as [in, out], calibrated. The release of transformers that
// tests/peers/transformers pins loads the folders and predicts more like the source than with each weight rounded to the nearest, and our own
// pass finds the same distance. A line a family; exit code 1 for any other.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { buildAll } from '../setup/build.mjs';
import { main } from '../setup/command.mjs';
import { pythonOf } from './family_loader.mjs';
import { tokensOf } from './pseudo_text.mjs';

const compressed = 'compressed-tensors';
/** The only format of folders that holds weights stored as [in, out], or that classes of T5 load. */
const plain = 'fake-quantized';
const families = {
  mixtral: compressed,
  qwen3_moe: compressed,
  qwen3_5_text: compressed,
  qwen3_next: compressed,
  granitemoehybrid: compressed,
  falcon_h1: compressed,
  nemotron_h: compressed,
  lfm2: compressed,
  deepseek_v3: compressed,
  gemma2: compressed,
  'gemma3n-shared': compressed,
  'gemma4-shared': compressed,
  'gemma4-experts': plain,
  'gemma4-keys': compressed,
  qwen2: compressed,
  gpt2: plain,
  llama4_text: compressed,
  'llama4_text-bf16': plain,
  'gpt_oss-bf16': plain,
  'gpt_oss-mxfp4': plain,
  't5-v1_1': plain,
  umt5: plain,
};

/** What a script prints, given a text. */
async function printed(python, script, given, ...args) {
  const child = python.run(script, args, ['pipe', 'pipe', 2]);
  const closed = once(child, 'close');
  child.stdin.end(given);
  const out = await text(child.stdout);
  const [status] = await closed;
  if (status !== 0) throw new Error(`${script}: ${out.slice(-500)}`);
  return out;
}

/** Texts of the calibration and, with other seeds, of the judgement. */
const calibration = { tokens: { rows: Array.from({ length: 64 }, (_, i) => tokensOf(128, i + 1)) } };
const sequences = Array.from({ length: 8 }, (_, i) => tokensOf(128, i + 101));

const algorithms = {
  nearest: (config) => config,
  gptq: (config) => ({ ...config, algo_config: [{ name: 'gptq' }] }),
  awq: (config) => ({ ...config, algo_config: [{ name: 'awq' }] }),
  best: (config, quantizer) => quantizer.presetConfig(config, { best: true }),
};

/** Folders of a family by algorithm, and the mean KL of each by our own pass. */
async function calibrated(quantizer, work, family) {
  const source = join(work, family);
  const model = await quantizer.open(source);
  const preset = quantizer.presetConfig('int4_wo_32');
  const folders = {};
  const means = {};
  for (const [name, of] of Object.entries(algorithms)) {
    folders[name] = join(work, `${family}.${name}`);
    const options = name === 'nearest' ? {} : { calibration };
    await quantizer.quantizeModel(model, of(preset, quantizer), {
      target: folders[name],
      format: families[family],
      ...options,
    });
    const lm = quantizer.languageModel(await quantizer.open(folders[name]));
    const { divergence } = await lm.evaluate({ tokens: { rows: sequences }, against: model, scored: 'all' });
    means[name] = divergence.meanKld;
  }
  return { source, folders, means };
}

// Shares of the distance of nearest. These weights have no channels that stand out, which are what awq scales.
const most = { nearest: 1.001, gptq: 0.8, awq: 1.05, best: 0.8 };
// What a random encoder gives has no directions that stand out, either, which are what gptq spares.
const mostOfDecoders = { ...most, gptq: 0.9, best: 0.9 };
const encoderDecoders = ['t5-v1_1', 'umt5'];
// Our reference has the 16 bits of llama-perplexity's files.
const tolerance = 0.02;

function problemOf(name, found, means) {
  const shares = encoderDecoders.includes(name) ? mostOfDecoders : most;
  if (found.error) return found.error;
  for (const [by, mean] of Object.entries(found)) {
    if (!(mean < shares[by] * found.nearest)) return `${by} is too far for one of ${found.nearest} by nearest`;
    if (!(Math.abs(mean - means[by]) < tolerance * mean)) return `${by}: our own pass finds ${means[by]}`;
  }
  return '';
}

await main(async () => {
  buildAll();
  const { createQuantizer } = await import('../../dist/node.js');
  const python = pythonOf('pinned');
  const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(families);
  const quantizer = await createQuantizer({ threads: 0 });
  const work = mkdtempSync(join(tmpdir(), 'calibrated-'));
  let wrong = 0;
  try {
    await printed(python, 'make_families.py', '', work, ...names);
    const models = [];
    for (const name of names) models.push(await calibrated(quantizer, work, name));
    const lines = await printed(python, 'calibrated.py', JSON.stringify({ models, sequences }));
    const results = lines
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    for (const [i, { means }] of models.entries()) {
      const problem = problemOf(names[i], results[i], means);
      const figures = Object.entries(results[i]).map(([name, mean]) => `${name} ${Number(mean).toPrecision(3)}`);
      process.stdout.write(`${names[i].padEnd(18)} ${problem ? 'W' : '='} ${figures.join('  ')}  ${problem}\n`);
      wrong += problem ? 1 : 0;
    }
  } finally {
    python.close();
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true });
  }
  return wrong > 0 ? 1 : 0;
});
