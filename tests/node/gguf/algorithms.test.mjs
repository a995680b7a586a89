// Algorithms that change float weights before GGUF's types round them: the same as through a float folder.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const length = 256;
const { data: ids } = readTensors(join(files, 'tiny-llama-reference/calib_tokens.safetensors')).get('input_ids');
const calibration = { tokens: { data: Int32Array.from(ids.subarray(0, 4 * length)), shape: [4, length] } };
const scaling_layers = { first_layer: [], middle_layers: [], last_layer: [] };
const rotation = { name: 'rotation', scaling_layers, r2: true };

/** GGUF bytes of a source. */
async function ggufOf(t, quantizer, source, recipe, rest = {}, options = {}) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  const config = { dialect: 'gguf', recipe, ...rest };
  const report = await quantizer.quantizeModel(model, config, { target: out.stream, format: 'gguf', ...options });
  return { bytes: out.bytes(), report };
}

/** The same weights in float, in a folder. */
async function floatFolder(t, quantizer, target, algorithms, options = {}) {
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 };
  const config = { global_quant_config: { weight }, exclude: ['*'], pre_quant_opt_config: algorithms };
  const model = await modelFor(t, quantizer, tinyLlama);
  await quantizer.quantizeModel(model, config, { target, format: 'fake-quantized', ...options });
  return target;
}

test('rotation and cle into GGUF: the same bytes as by way of a float folder', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  for (const [name, algorithms] of [
    ['rotation', [rotation]],
    ['cle', [{ name: 'cle' }]],
  ]) {
    const through = await floatFolder(t, quantizer, join(folder, name), algorithms);
    for (const recipe of ['q4_k_m', 'q8_0']) {
      const { bytes } = await ggufOf(t, quantizer, tinyLlama, recipe, { pre_quant_opt_config: algorithms });
      const { bytes: expected } = await ggufOf(t, quantizer, through, recipe);
      const { bytes: plain } = await ggufOf(t, quantizer, tinyLlama, recipe);
      const tensorsOf = async (file) => {
        const { tensors } = await modelFor(t, quantizer, file);
        return new Map(tensors.map(({ name: key, begin, end }) => [key, file.subarray(begin, end)]));
      };
      const [found, wanted, unchanged] = [await tensorsOf(bytes), await tensorsOf(expected), await tensorsOf(plain)];
      assert.deepEqual([...found.keys()], [...wanted.keys()]);
      for (const [key, part] of found) assert.deepEqual(part, wanted.get(key), `${name} ${recipe} ${key}`);
      assert.notDeepEqual(found.get('blk.0.ffn_down.weight'), unchanged.get('blk.0.ffn_down.weight'));
    }
  }
});

test('smooth and awq into GGUF: close to the result by way of a float folder, with errors reported, for any threads', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const smooth = [{ name: 'smooth', alpha: 0.5 }];
  const through = await floatFolder(t, quantizer, join(folder, 'smooth'), smooth, { calibration });
  const { bytes, report } = await ggufOf(
    t,
    quantizer,
    tinyLlama,
    'q8_0',
    { pre_quant_opt_config: smooth },
    { calibration },
  );
  const written = await modelFor(t, quantizer, bytes);
  const { tensors } = await quantizer.compare(await modelFor(t, quantizer, through), written);
  // Blocks see what the blocks before have become, so scales differ a little.
  for (const { name, error } of tensors) if (error) assert.ok(error.sqnrDb > 30, `${name} ${error.sqnrDb}`);
  const { tensors: changed } = await quantizer.compare(await modelFor(t, quantizer, tinyLlama), written);
  const up = changed.find(({ name }) => name === 'model.layers.0.mlp.up_proj.weight');
  assert.ok(up.error.sqnrDb < 20, 'smoothing changes it');
  const row = report.tensors.find(({ name }) => name === up.name);
  assert.ok(row.error.sqnrDb > 40, 'its error is that of rounding');
  const awq = { algo_config: [{ name: 'awq' }] };
  const one = await ggufOf(t, quantizer, tinyLlama, 'q4_k_m', awq, { calibration });
  const alone = await quantizerFor(t, { threads: 0 });
  assert.deepEqual((await ggufOf(t, alone, tinyLlama, 'q4_k_m', awq, { calibration })).bytes, one.bytes);
  assert.notDeepEqual(one.bytes, (await ggufOf(t, quantizer, tinyLlama, 'q4_k_m')).bytes);
});

test('algorithms that choose codes, or need a runtime, are refused', async (t) => {
  const quantizer = await quantizerFor(t);
  const refused = (source, rest, expected) =>
    assert.rejects(ggufOf(t, quantizer, source, 'q4_0', rest, { calibration }), expected);
  const where = '/algo_config/0';
  await refused(tinyLlama, { algo_config: [{ name: 'gpfq' }] }, { code: 'format-unsupported', where });
  await refused(tinyLlama, { algo_config: [{ name: 'awk' }] }, { code: 'config-invalid' });
  const pre_quant_opt_config = [{ ...rotation, r4: true }];
  await refused(
    tinyLlama,
    { pre_quant_opt_config },
    { code: 'format-unsupported', where: '/pre_quant_opt_config/0/r4' },
  );
});
