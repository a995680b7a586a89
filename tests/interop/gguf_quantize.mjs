// GGUF files as users get them: the library quantizes tiny-llama, from its folder and from F32 GGUF, by every recipe, and
// every tensor has llama-quantize's type and its bytes; llama.cpp then runs them. A line per case; exit code 1 when
// something differs.
//   node tests/interop/gguf_quantize.mjs    tools from .peers (tests/interop/peers.sh), or the folder WASMQUANT_LLAMA_BIN
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';
import { main, root } from '../setup/command.mjs';
import { llama } from './peers.mjs';

const tinyLlama = join(root, 'tests/files/tiny-llama');

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
    const recipes = quantizer.presets().flatMap(({ config }) => (config.recipe ? [config.recipe] : []));
    recipes.push('mxfp4');
    for (const recipe of recipes.filter((name) => name !== 'q2_k_s')) {
      for (const pure of recipe === 'mxfp4' ? [true] : [false, true]) {
        const name = `${recipe}${pure ? ' --pure' : ''}`;
        const config = { dialect: 'gguf', recipe, pure };
        const [theirs, ours, converted] = ['theirs', 'ours', 'converted'].map((file) => join(work, `${file}.gguf`));
        try {
          const type = recipe === 'mxfp4' ? 'MXFP4_MOE' : recipe.toUpperCase();
          said('llama-quantize', ...(pure ? ['--pure'] : []), base, theirs, type, '1');
          await quantizer.quantizeModel(plain, config, { target: ours, overwrite: true });
          await quantizer.quantizeModel(source, config, { target: converted, overwrite: true });
          const expected = await contents(quantizer, theirs);
          report(`${name}, from GGUF`, difference(await contents(quantizer, ours), expected));
          report(`${name}, from safetensors`, difference(await contents(quantizer, converted), expected));
        } catch (error) {
          report(name, error.message);
        }
      }
    }
    for (const recipe of ['q8_0', 'q4_0', 'q4_k_m', 'q6_k', 'iq4_nl', 'mxfp4', 'tq2_0', 'bf16']) {
      const file = join(work, `${recipe}.gguf`);
      await quantizer.quantizeModel(source, { dialect: 'gguf', recipe }, { target: file });
      try {
        const text = said(
          'llama-completion',
          '-m',
          file,
          '-p',
          'The ',
          '-n',
          '8',
          '--no-warmup',
          '-no-cnv',
          '--temp',
          '0',
          '-t',
          '1',
        );
        report(`${recipe} runs`, /The .{4}/s.test(text) ? null : `wrote ${JSON.stringify(text.slice(-80))}`);
      } catch (error) {
        report(`${recipe} runs`, error.message);
      }
    }
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true, force: true });
  }
  process.stdout.write(`gguf-quantize: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
