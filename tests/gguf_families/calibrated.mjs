// npm run test:calibrated-gguf [-- FAMILY...]: tiny mixtures, and families whose rows or columns GGUF has in another
// order, multiplied or in several tensors, as q4_k_m with calibrated codes, from folders. llama.cpp loads the
// files and predicts more like the source than with each weight rounded to the nearest; where our own pass reads the files, it finds the same
// cross entropy. A line a family; exit code 1 for any other. Needs what tests/interop/peers.sh makes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tokensOf } from '../families/pseudo_text.mjs';
import { LlamaCpp, Server } from '../peers/llamacpp/server.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';

const peers = join(root, 'tests/interop/peers.sh');
/** Values: whether our pass reads their GGUF files, whose weights are then in its own order. */
const families = {
  mixtral: true,
  qwen3_moe: true,
  'gpt_oss-bf16': false,
  gpt_neox: false,
  bloom: false,
  'falcon-new': false,
  granitemoeshared: false,
  qwen3_5_text: false,
  qwen3_next: false,
  deepseek_v2: false,
  falcon_h1: false,
};
const vocabulary = 288;
/**
 * Share of the KL of nearest over `evaluated`: inputs of random weights are nearly white, so that error feedback has 2 dB to win, and tokens
 * that go to other experts dominate the KL. And the largest relative difference of our cross entropy from llama.cpp's.
 */
const most = 0.9;
const tolerance = 0.01;

const calibration = { tokens: { rows: Array.from({ length: 64 }, (_, i) => tokensOf(128, i + 1)) } };
/** For the KL by our own pass; llama.cpp is asked for some 290 tokens. */
const evaluated = { rows: Array.from({ length: 16 }, (_, i) => tokensOf(128, i + 201)) };
/** The first tokens are unlike those behind them, from which most of the calibration comes. */
const [shortest, longest] = [40, 64];
const sequences = Array.from({ length: 12 }, (_, i) => tokensOf(longest, i + 101));
/** Beginnings of them, and the tokens that follow. */
const prompts = sequences.flatMap((tokens) => tokens.slice(shortest).map((_, i) => tokens.slice(0, shortest + i)));
const nextTokens = sequences.flatMap((tokens) => tokens.slice(shortest));

/** Of what float32 has no probability, for which llama.cpp gives the least float. */
const least = Math.log(2 ** -149);

function logarithms(logits) {
  const largest = Math.max(...logits);
  const sum = logits.reduce((all, value) => all + Math.exp(value - largest), 0);
  return logits.map((value) => Math.max(value - largest - Math.log(sum), least));
}

/** llama.cpp's log-probabilities of the last tokens of sequences, each behind all others; null where it ends the text, of which it gives none. */
async function predictions(file) {
  const server = await Server.start(file);
  try {
    const found = [];
    for (const tokens of prompts) {
      const answer = await server.next(tokens, vocabulary).catch(() => null);
      if (answer && !answer.logits.every(Number.isFinite)) throw new Error('a logit is not finite');
      found.push(answer && logarithms(answer.logits));
    }
    return found;
  } finally {
    await server.stop();
  }
}

const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const divergence = (from, to) =>
  meanOf(from.map((row, i) => row.reduce((sum, value, k) => sum + Math.exp(value) * (value - to[i][k]), 0)));

/** Our own losses of the tokens that follow the prompts, in nats: what the whole sequence has more than without its last token. */
async function ownLosses(quantizer, file, source) {
  const lm = quantizer.languageModel(await quantizer.open(file), { source });
  const lossesOf = async (rows) => (await lm.evaluate({ tokens: { rows }, activations: 'gguf' })).sequenceLosses;
  const without = await lossesOf(prompts);
  const losses = await lossesOf(prompts.map((tokens, i) => [...tokens, nextTokens[i]]));
  return losses.map((loss, i) => loss - without[i]);
}

/** KL of a file's predictions from the model's, of tokens unlike those that calibrated it. */
async function ownDivergence(quantizer, file, source) {
  const lm = quantizer.languageModel(await quantizer.open(file), { source });
  const { divergence } = await lm.evaluate({ tokens: evaluated, against: source, activations: 'gguf', scored: 'all' });
  return divergence.meanKld;
}

/** Figures of a family: KL of nearest and of the best config, by llama.cpp and by us, and the cross entropy of the latter by llama.cpp and by us. */
async function figuresOf(quantizer, folder, isRead) {
  const model = await quantizer.open(folder);
  const recipe = (name) => ({ dialect: 'gguf', recipe: name });
  const configs = {
    source: recipe('f32'),
    nearest: recipe('q4_k_m'),
    best: quantizer.presetConfig(recipe('q4_k_m'), { best: true }),
  };
  const found = {};
  const file = (name) => `${folder}.${name}.gguf`;
  for (const [name, config] of Object.entries(configs)) {
    const given = name === 'best' ? { calibration } : {};
    await quantizer.quantizeModel(model, config, { target: file(name), format: 'gguf', ...given });
    found[name] = await predictions(file(name));
  }
  const seen = prompts.map((_, i) => i).filter((i) => Object.values(found).every((rows) => rows[i] !== null));
  if (seen.length < prompts.length / 2)
    throw new Error(`llama.cpp answers ${seen.length} of ${prompts.length} prompts`);
  const [source, nearest, best] = Object.values(found).map((rows) => seen.map((i) => rows[i]));
  const own = isRead ? await ownLosses(quantizer, file('best'), model) : null;
  const divergenceOf = (name) => (isRead ? ownDivergence(quantizer, file(name), model) : null);
  return {
    nearest: divergence(source, nearest),
    best: divergence(source, best),
    ownNearest: await divergenceOf('nearest'),
    ownBest: await divergenceOf('best'),
    llamaLoss: meanOf(seen.map((i) => -found.best[i][nextTokens[i]])),
    loss: own && meanOf(seen.map((i) => own[i])),
  };
}

function problemOf({ nearest, best, ownNearest, ownBest, llamaLoss, loss }) {
  if (!(best < nearest)) return `the best has ${best / nearest} of the KL of nearest in llama.cpp`;
  if (ownNearest !== null && !(ownBest < most * ownNearest))
    return `the best has ${ownBest / ownNearest} of the KL of nearest`;
  const isSame = loss === null || Math.abs(loss - llamaLoss) < tolerance * llamaLoss;
  return isSame ? '' : `our cross entropy is ${loss}, llama.cpp's ${llamaLoss}`;
}

await main(async () => {
  buildAll();
  new LlamaCpp('llamacpp');
  const { createQuantizer } = await import('../../dist/node.js');
  const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(families);
  const quantizer = await createQuantizer({ threads: 0 });
  const work = mkdtempSync(join(tmpdir(), 'calibrated-gguf-'));
  let wrong = 0;
  try {
    const args = ['run', 'python3', 'tests/families/make_families.py', work, ...names];
    const made = spawnSync(peers, args, { cwd: root, encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`make_families.py: ${made.stdout.slice(-500)}${made.stderr.slice(-500)}`);
    for (const name of names) {
      const figures = await figuresOf(quantizer, join(work, name), families[name]);
      const problem = problemOf(figures);
      const shown = Object.entries(figures).map(([key, value]) => `${key} ${value?.toPrecision(4) ?? '-'}`);
      process.stdout.write(`${name.padEnd(14)} ${problem ? 'W' : '='} ${shown.join('  ')}  ${problem}\n`);
      wrong += problem ? 1 : 0;
    }
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true });
  }
  return wrong > 0 ? 1 : 0;
});
