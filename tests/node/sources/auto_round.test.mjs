// Checkpoints of AutoRound: words of gptq and awq under its own packing_format. AutoRound reads ours by `npm run test:peers -- autoround`.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { modelFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const quantizer = await createQuantizer({ threads: 0 });
after(() => quantizer[Symbol.asyncDispose]());

const layer = 'model.layers.0.self_attn.q_proj';

/** Two models of the same tensors: as `format` has them, and with a block of AutoRound. */
async function pairOf(t, format, preset, block) {
  const source = await modelFor(t, quantizer, tinyLlama);
  const [ours, theirs] = ['ours', 'theirs'].map((name) => join(scratchFolder(t), name));
  await quantizer.quantizeModel(source, preset, { format, target: ours });
  cpSync(ours, theirs, { recursive: true });
  const path = join(theirs, 'config.json');
  const config = JSON.parse(readFileSync(path, 'utf8'));
  const { bits, w_bit = bits, sym = false } = config.quantization_config;
  config.quantization_config = { quant_method: 'auto-round', bits: w_bit, data_type: 'int', sym, ...block };
  writeFileSync(path, JSON.stringify(config));
  return { source, ours: await modelFor(t, quantizer, ours), theirs: await modelFor(t, quantizer, theirs) };
}

const packings = [
  ['auto_round:auto_gptq', 'gptq', 'int4_wo_32'],
  ['auto_round:gptq', 'gptq', 'int4_wo_32'],
  ['auto_round', 'gptq', 'uint4_wo_32'],
  ['auto_round:gptqmodel', 'gptq', 'uint4_wo_32'],
  ['auto_round:auto_awq', 'awq', 'uint4_wo_32'],
  ['auto_round:awq', 'awq', 'uint4_wo_32'],
];
for (const [name, format, preset] of packings)
  test(`${name} decodes as ${format} of ${preset}`, async (t) => {
    const extra_config = { lm_head: { bits: 16, data_type: 'float' }, [layer]: { group_size: 32 } };
    const { source, ours, theirs } = await pairOf(t, format, preset, { packing_format: name, extra_config });
    const { tensors } = await quantizer.compare(ours, theirs);
    assert.equal(tensors.length, 39);
    for (const { name: tensor, error } of tensors) assert.equal(error.maxAbs, 0, tensor);
    const [errors, expected] = [await quantizer.compare(source, theirs), await quantizer.compare(source, ours)];
    assert.deepEqual(errors.totals, expected.totals);
  });

const refusals = {
  'another packing': [{ packing_format: 'auto_round:llm_compressor' }, 'packing_format'],
  'no packing': [{}, 'packing_format'],
  'floating-point data': [{ packing_format: 'auto_round', data_type: 'fp' }, 'packing_format'],
  'a layer with another sym': [
    { packing_format: 'auto_round:auto_gptq', extra_config: { [layer]: { bits: 4, sym: false } } },
    'extra_config',
  ],
};
for (const [what, [block, where]] of Object.entries(refusals))
  test(`${what} is refused`, async (t) => {
    const { theirs } = await pairOf(t, 'gptq', 'int4_wo_32', block);
    const place = { code: 'format-unsupported', where: `/quantization_config/${where}` };
    await assert.rejects(() => quantizer.plan(theirs, 'int8'), place);
  });
