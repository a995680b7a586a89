// GGUF files as users get them: the library quantizes tiny-llama, from its folder and from F32 GGUF, by every recipe, and
// every tensor has llama-quantize's type and its bytes, also with importance matrices of either side's making;
// llama.cpp then runs them. A line per case; exit code 1 when something differs.
//   node tests/interop/gguf/quantize.mjs    tools from .peers (tests/interop/peers.sh), or the folder WASMQUANT_LLAMA_BIN
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { main, root } from '../../setup/command.mjs';
import { completion, llama } from '../peers.mjs';
import { writeExperts, writeImportance } from './experts.mjs';

const tinyLlama = join(root, 'tests/files/tiny-llama');

/** Recipes that llama-quantize refuses without an importance matrix. */
const needMatrix = new Set('q2_k_s iq3_xxs iq3_xs iq2_m iq2_s iq2_xs iq2_xxs iq1_s iq1_m'.split(' '));

/** Recipes that also read a matrix in llama.cpp's older format: how bytes become importances does not depend on the type. */
const readOldMatrix = new Set(['q4_k_m', 'iq2_xs']);

/**
 * The runs of a recipe: with and without a matrix, `--pure` and not. Types are chosen and importances found in one place for both
 * sources, so that each is tried without a matrix, and one of them with each.
 */
function runsOf(recipe, [ours, theirs, theirDat]) {
  // All of one of these types is more than llama-quantize can do: its matrices have no token embedding.
  const isMixed = /^(iq2_s|iq2_xx?s|iq1_s)$/.test(recipe);
  const both = recipe === 'mxfp4' ? [true] : isMixed ? [false] : [false, true];
  const matrices = [
    ...(needMatrix.has(recipe) ? [] : [[null, ['GGUF', 'safetensors']]]),
    [ours, ['safetensors']],
    [theirs, ['GGUF']],
    ...(readOldMatrix.has(recipe) ? [[theirDat, ['GGUF']]] : []),
  ];
  return both.flatMap((pure) => matrices.map(([imatrix, sources]) => ({ pure, imatrix, sources })));
}

/** What one of llama.cpp's programs says, which must succeed. */
function said(program, ...args) {
  const { ok, output } = llama(program, ...args);
  if (!ok) throw new Error(`${program}: ${output.trim().slice(-400)}`);
  return output;
}

/** Map of tensor name to its type and bytes. */
async function contents(quantizer, path) {
  const model = await quantizer.open(path);
  await model.close();
  const bytes = readFileSync(path);
  return new Map(
    model.tensors.map(({ name, dtype, begin, end }) => [name, { dtype, bytes: bytes.subarray(begin, end) }]),
  );
}

/** What differs first; null when nothing does. */
function difference(ours, theirs) {
  if (ours.size !== theirs.size) return `${ours.size} tensors, llama-quantize has ${theirs.size}`;
  for (const [name, { dtype, bytes }] of ours) {
    const other = theirs.get(name);
    if (!other) return `${name} is not in llama-quantize's file`;
    if (dtype !== other.dtype) return `${name} is ${dtype}, llama-quantize makes ${other.dtype}`;
    if (!bytes.equals(other.bytes)) return `${name} (${dtype}) has other bytes`;
  }
  return null;
}

/** Largest difference of mean squares between two matrices, as a part of the largest of the layer. */
async function distance(quantizer, ours, theirs) {
  const [a, b] = await Promise.all([ours, theirs].map((path) => contents(quantizer, path)));
  const floats = ({ bytes }) => new Float32Array(new Uint8Array(bytes).buffer);
  let worst = 0;
  for (const [name, values] of a) {
    if (!name.endsWith('.in_sum2')) continue;
    const [x, y] = [a, b].map((file) => {
      const [count] = floats(file.get(name.replace('.in_sum2', '.counts')));
      return floats(file.get(name)).map((sum) => sum / count);
    });
    if (x.length !== y.length) return `${name} has ${x.length} columns, llama-imatrix ${y.length}`;
    const largest = y.reduce((most, value) => Math.max(most, value), 0);
    for (const [i, value] of x.entries()) worst = Math.max(worst, Math.abs(value - y[i]) / largest);
    if (values.bytes.length === 0) return `${name} is empty`;
  }
  return worst < 0.01 ? null : `differs by ${worst} from llama-imatrix`;
}

/** Matrices by us and by llama-imatrix, of one text; their paths. */
async function importance(quantizer, source, base, work, report) {
  const text = readFileSync(join(tinyLlama, 'README.md'));
  const [length, sequences] = [256, 16];
  const [textFile, ours, theirs, theirDat] = [
    'text.txt',
    'our-matrix.gguf',
    'their-matrix.gguf',
    'their-matrix.dat',
  ].map((name) => join(work, name));
  writeFileSync(textFile, text);
  // llama-imatrix begins each chunk with <s> instead of the token that stands there.
  const ids = new Int32Array(length * sequences);
  for (let i = 0; i < ids.length; ++i) ids[i] = i % length === 0 ? 256 : text[i - 1];
  const tokens = { data: ids, shape: [sequences, length] };
  writeFileSync(ours, await quantizer.languageModel(source).importance({ calibration: { tokens } }));
  const options = ['-m', base, '-f', textFile, '-c', String(length), '--chunks', String(sequences), '-t', '1'];
  const exact = ['-fa', 'off', '-ctk', 'f32', '-ctv', 'f32'];
  said('llama-imatrix', ...options, ...exact, '-o', theirs);
  said('llama-imatrix', ...options, ...exact, '-o', theirDat, '--output-format', 'dat');
  report('importance matrix', await distance(quantizer, ours, theirs));
  return [ours, theirs, theirDat];
}

/** What is wrong when llama.cpp writes a text with the file; else null. */
function completes(file, flags = []) {
  const isWhole = (text) => /The .{4}/s.test(text);
  const { ok, stdout, output } = completion(file, 'The ', ['-n', '8', ...flags], isWhole);
  return ok && isWhole(stdout) ? null : `wrote ${JSON.stringify(stdout)}: ${output.trim().slice(-400)}`;
}

/** Recipes whose codes are chosen by calibration: types and sizes are llama-quantize's, llama.cpp finds the blocks valid and runs them. */
async function calibrated(quantizer, source, matrix, work, report) {
  const [plain, ours] = ['plain', 'calibrated'].map((file) => join(work, `${file}.gguf`));
  const ids = Int32Array.from(readFileSync(join(tinyLlama, 'README.md')).subarray(0, 1024));
  const calibration = { tokens: { data: ids, shape: [4, 256] } };
  const shapes = async (path) =>
    [...(await contents(quantizer, path))].map(([name, { dtype, bytes }]) => `${name} ${dtype} ${bytes.length}`);
  for (const recipe of [
    'q4_0',
    'q4_1',
    'q5_0',
    'q5_1',
    'q8_0',
    'q2_k',
    'q3_k_m',
    'q4_k_m',
    'q5_k_m',
    'q6_k',
    'iq4_nl',
    'iq4_xs',
  ]) {
    const config = { dialect: 'gguf', recipe };
    const gguf = { imatrix: readFileSync(matrix) };
    await quantizer.quantizeModel(source, config, { target: plain, overwrite: true, gguf });
    await quantizer.quantizeModel(source, quantizer.presetConfig(config, { best: true }), {
      target: ours,
      overwrite: true,
      calibration,
    });
    const [expected, found] = [await shapes(plain), await shapes(ours)];
    const other = found.find((line, i) => line !== expected[i]);
    report(`${recipe}, calibrated, has the recipe's types`, other ? `${other} is another type or size` : null);
    report(`${recipe}, calibrated, runs`, completes(ours, ['--check-tensors']));
  }
}

/** Parts of a size: llama.cpp runs them, and llama-gguf-split makes one file of them. */
async function split(quantizer, source, work, report) {
  const folder = join(work, 'parts');
  const { files } = await quantizer.quantizeModel(source, 'q4_k_m', { target: folder, gguf: { shardBytes: 400_000 } });
  const first = join(folder, files[0].name);
  report(`${files.length} parts run`, completes(first));
  const merged = join(work, 'merged.gguf');
  try {
    said('llama-gguf-split', '--merge', first, merged);
    const [theirs, ours] = [merged, join(work, 'q4_k_m.gguf')].map((file) => contents(quantizer, file));
    report('parts merged by llama-gguf-split', difference(await ours, await theirs));
  } catch (error) {
    report('parts merged by llama-gguf-split', error.message);
  }
}

/** A mixture by measured loss: the bytes of llama-quantize given the type of each tensor. */
async function mixture(quantizer, plain, base, work, report) {
  const ids = Int32Array.from(readFileSync(join(tinyLlama, 'README.md')).subarray(0, 512));
  const calibration = { tokens: { data: ids, shape: [2, 256] } };
  const auto = { format: 'gguf', targetBits: 4.5, calibration };
  const { config } = await quantizer.languageModel(plain).autoConfig(auto);
  const [theirs, ours] = ['their-mixture', 'our-mixture'].map((name) => join(work, `${name}.gguf`));
  const types = Object.entries(config.layers).flatMap(([name, type]) => {
    const flag = { token_embd: '--token-embedding-type', output: '--output-tensor-type' }[name];
    return flag ? [flag, type] : ['--tensor-type', `^${name}.weight=${type}`];
  });
  try {
    said('llama-quantize', ...types, base, theirs, config.recipe.toUpperCase(), '1');
    await quantizer.quantizeModel(plain, config, { target: ours, overwrite: true, format: 'gguf' });
    const counted = new Set(Object.values(config.layers)).size;
    const problem = difference(await contents(quantizer, ours), await contents(quantizer, theirs));
    report(`a mixture of ${counted} types by --tensor-type`, counted > 2 ? problem : 'has too few types');
  } catch (error) {
    report('a mixture by --tensor-type', error.message);
  }
}

/** Experts that are stacked, one of which saw nothing, with a matrix of their own for each. */
async function expertsOf(quantizer, work, report) {
  const [path, matrix, theirs, ours] = ['experts', 'expert-matrix', 'their-experts', 'our-experts'].map((name) =>
    join(work, `${name}.gguf`),
  );
  writeExperts(path);
  writeImportance(matrix);
  const gguf = { imatrix: readFileSync(matrix) };
  const source = await quantizer.open(path);
  for (const recipe of ['q4_0', 'q4_k_m', 'q5_1', 'iq4_xs', 'q2_k', 'q3_k_m']) {
    try {
      said('llama-quantize', '--imatrix', matrix, path, theirs, recipe.toUpperCase(), '1');
      await quantizer.quantizeModel(source, { dialect: 'gguf', recipe }, { target: ours, overwrite: true, gguf });
      const [found, expected] = [await contents(quantizer, ours), await contents(quantizer, theirs)];
      report(`${recipe}, experts with a matrix each`, difference(found, expected));
    } catch (error) {
      report(`${recipe}, experts with a matrix each`, error.message);
    }
  }
}

await main(async () => {
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-gguf-'));
  let passed = 0;
  let failed = 0;
  const report = (name, problem) => {
    if (problem) ++failed;
    else ++passed;
    process.stdout.write(`gguf-quantize ${name}: ${problem ?? 'passed'}\n`);
  };
  const quantizer = await createQuantizer({ threads: 2 });
  try {
    const base = join(work, 'base.gguf');
    const source = await quantizer.open(tinyLlama);
    await quantizer.quantizeModel(source, 'f32', { target: base });
    const plain = await quantizer.open(base);
    const matrices = await importance(quantizer, source, base, work, report);
    const recipes = quantizer.presets().flatMap(({ config }) => (config.recipe ? [config.recipe] : []));
    recipes.push('mxfp4');
    for (const recipe of recipes)
      for (const { pure, imatrix, sources } of runsOf(recipe, matrices)) {
        const name = `${recipe}${pure ? ' --pure' : ''}${imatrix ? ` --imatrix ${basename(imatrix)}` : ''}`;
        const gguf = imatrix ? { imatrix: readFileSync(imatrix) } : {};
        const [theirs, ours] = ['theirs', 'ours'].map((file) => join(work, `${file}.gguf`));
        try {
          const type = recipe === 'mxfp4' ? 'MXFP4_MOE' : recipe.toUpperCase();
          const flags = [...(pure ? ['--pure'] : []), ...(imatrix ? ['--imatrix', imatrix] : [])];
          said('llama-quantize', ...flags, base, theirs, type, '1');
          const expected = await contents(quantizer, theirs);
          for (const from of sources) {
            const model = from === 'GGUF' ? plain : source;
            await quantizer.quantizeModel(
              model,
              { dialect: 'gguf', recipe, pure },
              { target: ours, overwrite: true, gguf },
            );
            report(`${name}, from ${from}`, difference(await contents(quantizer, ours), expected));
          }
        } catch (error) {
          // Of rows that q1_0's blocks of 128 do not fill, which are F16 here.
          if (!/no tensor type fallback is defined for type q1_0/.test(error.message)) report(name, error.message);
        }
      }
    for (const recipe of [
      'q8_0',
      'q4_0',
      'q4_k_m',
      'q6_k',
      'iq4_nl',
      'mxfp4',
      'tq2_0',
      'q1_0',
      'q2_0',
      'nvfp4',
      'bf16',
    ]) {
      const file = join(work, `${recipe}.gguf`);
      await quantizer.quantizeModel(source, { dialect: 'gguf', recipe }, { target: file });
      report(`${recipe} runs`, completes(file));
    }
    await calibrated(quantizer, source, matrices[0], work, report);
    await split(quantizer, source, work, report);
    await mixture(quantizer, plain, base, work, report);
    await expertsOf(quantizer, work, report);
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true, force: true });
  }
  process.stdout.write(`gguf-quantize: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
