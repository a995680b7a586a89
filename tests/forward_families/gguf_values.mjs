// npm run test:gguf-values [-- NAME...]: GGUF of tiny checkpoints whose codes GPTQ chose. Each tensor is that of the F32 file to 2 % of its
// size, and to the bit where its dtype stays, so nothing that a conversion changes (order, factors, logarithms) is lost between calibration and file. Codes
// change what a weight makes of the calibration's inputs no more than rounding to nearest does: the errors of columns went to the right ones. The columns of an
// importance matrix are in llama-imatrix's order, where llama.cpp runs the model. A line a family; exit code 1 for any other.
//   --part 2/6|date/6: every sixth family   --keep: leave the files, say where
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { Tokenizer } from '@huggingface/tokenizers';
import { inPart } from '../families/part.mjs';
import { tokensOf } from '../families/pseudo_text.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { families } from './cases.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const most = 0.02;
/** Families whose gates let few values through: GPTQ leaves columns that no token reaches at zero. */
const sparse = ['gemma3n_text', 'gemma3n-shared'];
const mostOfSparse = 0.5;
/** Of the largest of a weight: sums of float32 in another order. */
const mostOfImportance = 2e-3;
const window = 128;
const vocabulary = 'the word of god made light and earth from deep water'.split(' ');
const words = Array.from({ length: 500 }, (_, i) => vocabulary[(i * i + 3 * i) % vocabulary.length]).join(' ');
const calibration = { tokens: { rows: Array.from({ length: 32 }, (_, i) => tokensOf(64, i + 1)) } };

/** Mean squares by weight, each as a share of its sum. */
async function importances(quantizer, path) {
  const bytes = readFileSync(path);
  const { tensors } = await quantizer.open(path);
  const sums = tensors.filter(({ name }) => name.endsWith('.in_sum2'));
  return new Map(
    sums.map(({ name, begin, end }) => {
      const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset + begin, bytes.byteOffset + end));
      const sum = values.reduce((total, value) => total + value, 0);
      return [name, values.map((value) => value / sum)];
    }),
  );
}

/** Whole windows of the text's tokens, as llama-imatrix cuts them: each begins with the token that begins texts. */
async function rowsOf(quantizer, folder, plain) {
  const json = (name) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const tokenizer = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'));
  const { metadata } = await quantizer.open(plain);
  const begin =
    metadata['tokenizer.ggml.add_bos_token'] === 'true' ? [Number(metadata['tokenizer.ggml.bos_token_id'])] : [];
  const ids = [...begin, ...tokenizer.encode(words, { add_special_tokens: false }).ids];
  const rows = Array.from({ length: Math.floor(ids.length / window) }, (_, i) =>
    ids.slice(i * window, (i + 1) * window),
  );
  return rows.map((row) => [...begin, ...row.slice(begin.length)]);
}

const differenceOf = (values, others) =>
  Math.max(...values.map((value, i) => Math.abs(value - others[i]))) / Math.max(...others);

/** What differs from llama-imatrix, or why it was not asked. */
async function importanceOf(quantizer, model, folder, plain) {
  const [ours, theirs, text] = [`${folder}-ours.gguf`, `${folder}-theirs.gguf`, `${folder}.txt`];
  writeFileSync(text, words);
  const asked = ['run', 'llama-imatrix', '-m', plain, '-f', text, '-o', theirs, '-c', String(window), '-t', '1'];
  if (spawnSync(peers, asked, { cwd: root }).status !== 0 || !existsSync(theirs))
    return { note: 'llama-imatrix fails' };
  if (!existsSync(join(folder, 'tokenizer.json'))) return { note: 'no tokenizer.json' };
  const tokens = { rows: await rowsOf(quantizer, folder, plain) };
  writeFileSync(ours, await quantizer.languageModel(model).importance({ calibration: { tokens } }));
  const [found, expected] = [await importances(quantizer, ours), await importances(quantizer, theirs)];
  let [count, worst] = [0, { name: '', difference: 0 }];
  for (const [name, values] of found) {
    const other = expected.get(name);
    if (!other || other.length !== values.length) continue;
    ++count;
    const difference = differenceOf(values, other);
    // llama.cpp computes some of these models otherwise, and experts are chosen by near ties: only an order is wrong in any case.
    if (differenceOf(values.toSorted(), other.toSorted()) > mostOfImportance) continue;
    if (!(difference <= worst.difference)) worst = { name, difference };
  }
  if (count === 0) return { note: 'no weight in common with llama-imatrix' };
  return worst.difference < mostOfImportance
    ? { note: `${count} importances` }
    : { problem: `importance of ${worst.name} by ${worst.difference.toFixed(3)}` };
}

/** A tensor that keeps its dtype but not its bytes, which no algorithm here changes. */
function changedCopy(plain, plainTensors, calibrated, tensors) {
  const bytesOf = (file, { begin, end }) => file.subarray(begin, end);
  const others = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const isChanged = (tensor) => {
    const other = others.get(tensor.name);
    return other.dtype === tensor.dtype && !bytesOf(plain, tensor).equals(bytesOf(calibrated, other));
  };
  return plainTensors.find(isChanged)?.name;
}

/** The worst tensor, or why there is no file. */
async function outcomeOf(quantizer, folder) {
  const [plain, calibrated] = [`${folder}-f32.gguf`, `${folder}-q8_0.gguf`];
  const model = await quantizer.open(folder);
  try {
    await quantizer.quantizeModel(model, 'f32', { format: 'gguf', target: plain });
  } catch (error) {
    return { isRight: true, text: `no GGUF ${error.code} ${error.where}: ${error.detail}`.slice(0, 160) };
  }
  const { problem, note } = await importanceOf(quantizer, model, folder, plain);
  if (problem) return { isRight: false, text: `W ${problem}` };
  let report;
  try {
    const config = { ...quantizer.presetConfig('q8_0'), algo_config: [{ name: 'gptq' }] };
    report = await quantizer.quantizeModel(model, config, { format: 'gguf', target: calibrated, calibration });
  } catch (error) {
    return { isRight: false, text: `W ${error.code} ${error.where}: ${error.detail}`.slice(0, 160) };
  }
  const worse = report.tensors.find(({ calibration: found }) => found?.isWorse);
  if (worse) return { isRight: false, text: `W ${worse.name} is worse than rounded to nearest` };
  const [from, to] = [await quantizer.open(plain), await quantizer.open(calibrated)];
  const changed = changedCopy(readFileSync(plain), from.tensors, readFileSync(calibrated), to.tensors);
  if (changed) return { isRight: false, text: `W ${changed} is no copy` };
  const { tensors } = await quantizer.compare(from, to);
  const errors = tensors.flatMap(({ name, error }) => (error ? [{ name, share: 10 ** (-error.sqnrDb / 20) }] : []));
  const worst = errors.reduce((a, b) => (b.share > a.share || Number.isNaN(b.share) ? b : a), { name: '', share: 0 });
  const isRight = errors.length > 0 && worst.share < (sparse.includes(basename(folder)) ? mostOfSparse : most);
  return { isRight, text: `${isRight ? '=' : 'W'} ${worst.name} ${(100 * worst.share).toFixed(2)} %, ${note}` };
}

await main(async () => {
  const options = { part: { type: 'string' }, keep: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const names = positionals.length > 0 ? positionals : inPart(Object.keys(families), values.part);
  buildAll();
  const { createQuantizer } = await import('../../dist/node.js');
  // Two, which divide the rows of each weight.
  const quantizer = await createQuantizer({ threads: 2 });
  const work = mkdtempSync(join(tmpdir(), 'gguf-values-'));
  let wrong = 0;
  try {
    const made = spawnSync(peers, ['run', 'python3', 'tests/families/make_families.py', work, ...names], { cwd: root });
    if (made.status !== 0) throw new Error(`make_families.py: ${String(made.stderr).slice(-500)}`);
    for (const name of names) {
      const { isRight, text } = await outcomeOf(quantizer, join(work, name));
      process.stdout.write(`${name.padEnd(24)} ${text}\n`);
      wrong += isRight ? 0 : 1;
    }
    process.stdout.write(`${names.length} families, ${wrong} wrong\n`);
  } finally {
    await quantizer[Symbol.asyncDispose]();
    if (values.keep) process.stdout.write(`files: ${work}\n`);
    else rmSync(work, { recursive: true });
  }
  return wrong > 0 ? 1 : 0;
});
