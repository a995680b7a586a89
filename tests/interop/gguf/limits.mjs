// GGUF files from weights beyond float16: what llama-quantize's own validation refuses is refused here, with an element of
// the block that it names; what it takes is written, with its bytes. A line per case; exit code 1 when something differs.
//   node tests/interop/gguf/limits.mjs    tools from .peers (tests/interop/peers.sh), or the folder WASMQUANT_LLAMA_BIN
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { main, root } from '../../setup/command.mjs';
import { llama } from '../peers.mjs';

const tensor = 'blk.1.ffn_up.weight';
const element = 1000;
const recipes =
  'f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k_m q4_k_m q5_k_m q6_k iq4_nl iq4_xs tq1_0 tq2_0 q1_0 q2_0 mxfp4'.split(
    ' ',
  );
/** From what float16 holds to the largest float; all of the tensor times 1e-37, in the last. */
const values = [65504, 7e4, 1e6, 1e12, 3.4e38, null];
/** Elements of a block, by what a weight of that recipe is stored in. */
const blockOf = (recipe) =>
  /16$/.test(recipe) ? 1 : /_k|_xs|^tq/.test(recipe) ? 256 : ({ q1_0: 128, q2_0: 64 }[recipe] ?? 32);

/** The tensor's bytes in the file. */
async function bytesOf(quantizer, path) {
  const model = await quantizer.open(path);
  await model.close();
  const { begin, end } = model.tensors.find(({ name }) => name === tensor);
  return readFileSync(path).subarray(begin, end);
}

/** What differs; null when nothing does. */
async function difference(quantizer, source, recipe, work) {
  const [theirs, ours] = [join(work, 'theirs.gguf'), join(work, 'ours.gguf')];
  const type = recipe === 'mxfp4' ? 'MXFP4_MOE' : recipe.toUpperCase();
  const pure = blockOf(recipe) > 1;
  // Rows of 576, which blocks of 128 do not divide: it has no other type for them.
  const flags = [...(pure ? ['--pure'] : []), ...(recipe === 'q1_0' ? ['--tensor-type', 'ffn_down=q8_0'] : [])];
  const { ok, output } = llama('llama-quantize', ...flags, source, theirs, type, '1');
  const config = { dialect: 'gguf', recipe, pure };
  const model = await quantizer.open(source);
  const error = await quantizer.quantizeModel(model, config, { target: ours, overwrite: true }).then(
    () => null,
    (failure) => failure,
  );
  await model.close();
  if (/invalid e value 255/.test(output)) return error && `refused: ${error.message}`; // zeros here, of what is below 2^-125
  if (ok !== (error === null))
    return ok ? `refused: ${error.message}` : `taken, but llama-quantize: ${output.slice(-200)}`;
  if (ok) return (await bytesOf(quantizer, ours)).equals(await bytesOf(quantizer, theirs)) ? null : 'has other bytes';
  const block = /value at block (\d+)/.exec(output)?.[1] ?? String(Math.floor(element / blockOf(recipe)));
  const named = /at element (\d+)/.exec(error.message)?.[1];
  const isSame =
    error.code === 'value-overflow' && error.where === tensor && Math.floor(named / blockOf(recipe)) === Number(block);
  return isSame ? null : `llama-quantize names block ${block}: ${error.message}`;
}

await main(async () => {
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-limits-'));
  const quantizer = await createQuantizer({ threads: 2 });
  let failed = 0;
  try {
    const base = join(work, 'base.gguf');
    const model = await quantizer.open(join(root, 'tests/files/tiny-llama'));
    await quantizer.quantizeModel(model, 'f32', { target: base });
    const { begin, end } = (await quantizer.open(base)).tensors.find(({ name }) => name === tensor);
    for (const value of values) {
      const bytes = readFileSync(base);
      const weights = new DataView(bytes.buffer, bytes.byteOffset + begin, end - begin);
      if (value !== null) weights.setFloat32(4 * element, value, true);
      else
        for (let at = 0; at < end - begin; at += 4) weights.setFloat32(at, weights.getFloat32(at, true) * 1e-37, true);
      const source = join(work, 'source.gguf');
      writeFileSync(source, bytes);
      for (const recipe of recipes) {
        const problem = await difference(quantizer, source, recipe, work);
        if (problem) ++failed;
        process.stdout.write(`gguf-limits ${recipe} of ${value ?? 'tiny weights'}: ${problem ?? 'passed'}\n`);
      }
    }
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true, force: true });
  }
  process.stdout.write(`gguf-limits: ${values.length * recipes.length - failed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
