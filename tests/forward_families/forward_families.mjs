// npm run test:forward-families [-- NAME...]: tiny checkpoints of model families (tests/families). The cross entropy of two texts is that of
// transformers in float32 to a relative difference of 1e-5, and a continuation, whose tokens are computed one by one behind a cache, has the
// tokens that transformers finds by whole passes. Of encoder-decoders it is that of the second half of a text behind the first. Of encoders, the embeddings of two texts, of length 1, differ by less than 1e-5 from those of
// transformers; of those that transformers has no class for, by less than 1e-4 from those of llama.cpp, which rounds gelu. A line a family and variant; exit code 1 for any difference.
//   --part 2/6|date/6: every sixth family   --keep: leave the files, say where
// Needs what tests/interop/peers.sh makes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inPart } from '../families/part.mjs';
import { Server } from '../peers/llamacpp/server.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { decodersOfEmbeddings, encoderDecoders, encoders, encodersOfLlamaCpp, families, refused } from './cases.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const spaces = { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 };
const tolerance = 1e-5;
const toleranceOfLlamaCpp = 1e-4;

/** Tokens below 256, which every tiny vocabulary has, without a short period. */
const tokensOf = (length, seed) => Array.from({ length }, (_, i) => (seed * 31 + i * i * 7 + i * 13 + (i >> 3)) % 251);
const sequences = [tokensOf(96, 1), tokensOf(40, 2)];
const rows = { tokens: { rows: sequences } };
const prompt = tokensOf(84, 3);
const count = 8;

function python(script, input, ...args) {
  return spawnSync(peers, ['run', 'python3', script, ...args], { ...spaces, input });
}

/** The checkpoints of a family: one for each variant, with the same weights. */
function modelsOf(work, name) {
  const from = join(work, name);
  const of = (lists, isEncoder, kind) =>
    (lists[name] ?? []).map((changes, i) => ({
      folder: Object.keys(changes).length === 0 ? from : `${from}.${kind}${i}`,
      from,
      changes,
      isEncoder,
      label: [name, ...Object.keys(changes)].join(' '),
    }));
  return [...of(families, false, ''), ...of(encoders, true, 'e'), ...of(encoderDecoders, false, 'd')];
}

function expectedOf(models) {
  const asked = JSON.stringify({ models, sequences, prompt, count });
  const { status, stdout, stderr } = python('tests/forward_families/losses.py', asked);
  // Classes of transformers print to stdout, too.
  const results = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map(JSON.parse);
  if (status !== 0 || results.length !== models.length) throw new Error(`losses.py: ${stderr.slice(-500)}`);
  return results;
}

/** Means by llama.cpp, from a GGUF file of the folder. */
async function embeddingsOfLlamaCpp(quantizer, folder) {
  const file = `${folder}.gguf`;
  await quantizer.quantizeModel(await quantizer.open(folder), 'f32', { format: 'gguf', target: file });
  const server = await Server.start(file, '--embedding', '--pooling', 'mean');
  try {
    const mean = [];
    for (const tokens of sequences) mean.push(await server.embedding(tokens));
    return { embeddings: { mean } };
  } finally {
    await server.stop();
  }
}

/** The largest difference of an embedding's elements, each of length 1. */
async function embeddingProblemOf(lm, expected, most = tolerance) {
  const tokenizer = { encode: (text) => sequences[Number(text)] };
  const texts = sequences.map((_, i) => String(i));
  let largest = 0;
  for (const [pooling, vectors] of Object.entries(expected.embeddings)) {
    const found = await lm.embeddings({ texts, tokenizer, pooling });
    for (const [i, vector] of vectors.entries()) {
      const length = Math.hypot(...vector);
      for (const [j, x] of vector.entries()) largest = Math.max(largest, Math.abs(x / length - found.vectors[i][j]));
    }
  }
  return largest < most ? { largest } : `embeddings differ by ${largest.toExponential(1)}`;
}

/** What differs between our figures and those of transformers, or the largest difference if that is small. */
async function problemOf(quantizer, folder, expected) {
  if (expected.error) return `transformers: ${expected.error}`;
  const lm = await quantizer.languageModel(await quantizer.open(folder));
  if (expected.embeddings) return embeddingProblemOf(lm, expected, expected.tolerance);
  const { sequenceLosses } = await lm.evaluate(rows);
  const differences = sequenceLosses.map((loss, i) => Math.abs(loss - expected.losses[i]) / expected.losses[i]);
  const largest = Math.max(...differences);
  if (!(largest < tolerance)) return `${sequenceLosses} nats are ${expected.losses} (${largest.toExponential(1)})`;
  const { tokens, stopped } = await lm.generate({ tokens: prompt, count });
  const isSame = tokens.every((token, i) => token === expected.tokens[i]);
  if (!isSame || (stopped !== 'end' && tokens.length !== count))
    return `continues with ${tokens}, transformers with ${expected.tokens} (margin ${expected.margin})`;
  return { largest };
}

async function check(quantizer, { folder, label }, expected) {
  let found;
  try {
    found = await problemOf(quantizer, folder, expected);
  } catch (error) {
    found = `${error.code} ${error.where}: ${error.message}`;
  }
  const isRight = typeof found === 'object';
  const outcome = isRight ? `= ${found.largest.toExponential(1)}` : `W ${found.slice(0, 400)}`;
  process.stdout.write(`${label.padEnd(32)} ${outcome}\n`);
  return isRight;
}

/** Refused by its name, with what can be done with the model. */
async function checkRefused(quantizer, folder, name) {
  let said = '';
  try {
    const lm = await quantizer.languageModel(await quantizer.open(folder));
    await lm.evaluate(rows);
  } catch (error) {
    said = error.message;
  }
  const isNamed =
    said.includes(`models of type "${name}" cannot be run here`) && said.includes('Every checkpoint format');
  process.stdout.write(`${name.padEnd(32)} ${isNamed ? 'refused' : `W ${said || 'is computed'}`}\n`);
  return isNamed;
}

await main(async () => {
  const options = { part: { type: 'string' }, keep: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const all = [...Object.keys({ ...families, ...encoders, ...encoderDecoders }), ...encodersOfLlamaCpp];
  const names = positionals.length > 0 ? positionals : inPart(all, values.part);
  const compared = names.filter((name) => !encodersOfLlamaCpp.includes(name));
  buildAll();
  const { createQuantizer } = await import('../../dist/node.js');
  const quantizer = await createQuantizer({ threads: 0 });
  const work = mkdtempSync(join(tmpdir(), 'forward-families-'));
  let wrong = 0;
  try {
    const others = positionals.length > 0 ? [] : refused;
    const made = python('tests/families/make_families.py', '', work, ...names, ...others);
    if (made.status !== 0) throw new Error(`make_families.py: ${made.stdout.slice(-500)}${made.stderr.slice(-500)}`);
    const models = compared.flatMap((name) => modelsOf(work, name));
    const expected = models.length > 0 ? expectedOf(models) : [];
    for (const name of names.filter((name) => decodersOfEmbeddings.includes(name)))
      writeFileSync(join(work, name, 'modules.json'), '[]');
    for (const [i, one] of models.entries()) wrong += (await check(quantizer, one, expected[i])) ? 0 : 1;
    for (const name of names.filter((name) => !compared.includes(name))) {
      const folder = join(work, name);
      const found = { ...(await embeddingsOfLlamaCpp(quantizer, folder)), tolerance: toleranceOfLlamaCpp };
      wrong += (await check(quantizer, { folder, label: name }, found)) ? 0 : 1;
    }
    for (const name of others) wrong += (await checkRefused(quantizer, join(work, name), name)) ? 0 : 1;
    process.stdout.write(
      `${names.length} families, ${models.length + names.length - compared.length} models, ${wrong} wrong\n`,
    );
  } finally {
    await quantizer[Symbol.asyncDispose]();
    if (values.keep) process.stdout.write(`files: ${work}\n`);
    else rmSync(work, { recursive: true });
  }
  return wrong > 0 ? 1 : 0;
});
