// Experts stacked in one GGUF tensor: each is quantized with its own importance, as if it were a tensor of its own.
// tests/interop/gguf/quantize.mjs compares the same files with llama-quantize's.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { expertImportance, expertTensors, sizes, writeExperts, writeImportance } from '../../interop/gguf/experts.mjs';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';

test('each expert of a stack has its own importance', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const [source, matrix] = ['experts.gguf', 'matrix.gguf'].map((name) => join(folder, name));
  const [tensors, importance] = [expertTensors(), expertImportance()];
  /** Stored bytes of a tensor, quantized with the importance in `matrix`. */
  const stored = async (recipe, name) => {
    const model = await modelFor(t, quantizer, source);
    const target = join(folder, 'out.gguf');
    const gguf = { imatrix: readFileSync(matrix) };
    await quantizer.quantizeModel(model, { dialect: 'gguf', recipe, pure: true }, { target, overwrite: true, gguf });
    const output = await modelFor(t, quantizer, target);
    const { begin, end } = output.tensors.find((tensor) => tensor.name === name);
    return readFileSync(target).subarray(begin, end);
  };
  const plain = 'blk.1.attn_q.weight';
  for (const stack of ['blk.0.ffn_gate_exps.weight', 'blk.1.ffn_up_exps.weight', 'blk.1.ffn_down_exps.weight'])
    for (const recipe of ['q4_0', 'iq4_xs', 'q3_k_m']) {
      writeExperts(source, tensors);
      writeImportance(matrix, importance);
      const whole = await stored(recipe, stack);
      const { sums, counts, columns } = importance.get(stack);
      const elements = sizes.width * sizes.inner;
      const alone = [];
      for (let expert = 0; expert < sizes.experts; ++expert) {
        const row = (list, size) => list.slice(expert * size, (expert + 1) * size);
        const own = { sums: row(sums, columns), counts: row(counts, 1), columns };
        // An expert that saw nothing counts all columns alike.
        if (own.counts[0] === 0) Object.assign(own, { sums: own.sums.map(() => 1), counts: own.counts.map(() => 1) });
        const data = row(tensors.get(stack).data, elements);
        writeExperts(source, new Map([...tensors, [plain, { shape: [sizes.width, sizes.inner], data }]]));
        writeImportance(matrix, new Map([...importance, [plain, own]]));
        alone.push(await stored(recipe, plain));
      }
      assert.ok(whole.equals(Buffer.concat(alone)), `${recipe} ${stack}`);
    }
});
