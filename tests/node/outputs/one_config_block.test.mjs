// A quantization_config is written in two cases: into a file that was made with a config, and when that config is converted to the file's dialect.
// Both blocks say the same of every spec that the file stores and the dialect expresses without a loss.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const layers = ['self_attn.q_proj', 'self_attn.o_proj', 'mlp.up_proj', 'mlp.down_proj'].map(
  (name) => `model.layers.0.${name}`,
);
const schemes = [
  { qscheme: 'per_tensor' },
  { qscheme: 'per_channel', ch_axis: 0 },
  ...[-1, 16, 32, 64].map((group_size) => ({ qscheme: 'per_group', ch_axis: -1, group_size })),
  { qscheme: 'per_block', block_size: [32, 32] },
];
const dtypes = ['int2', 'int3', 'int4', 'int8', 'uint2', 'uint3', 'uint4', 'uint8', 'fp4', 'fp8_e4m3'];
const dynamic = { dtype: 'int8', qscheme: 'per_channel', ch_axis: -1, is_dynamic: true, symmetric: true };

/** Weight specs, and some with dynamic inputs. */
function* configs() {
  for (const dtype of dtypes)
    for (const scheme of schemes)
      for (const symmetric of /^int/.test(dtype) ? [true, false] : [undefined])
        yield { weight: { dtype, ...scheme, ...(symmetric !== undefined && { symmetric }) } };
  for (const dtype of ['fp4', 'fp8_e4m3']) yield { weight: { dtype: 'mx', mx_element_dtype: dtype } };
  for (const group_size of [16, 32])
    yield { weight: { dtype: 'fp4', qscheme: 'per_group', ch_axis: -1, group_size, scale_format: 'e4m3' } };
  for (const dtype of ['int8', 'int4'])
    yield { weight: { dtype, qscheme: 'per_channel', ch_axis: 0, symmetric: true }, input_tensors: dynamic };
}

/** Keys whose order is the writer's own. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}

/** What both blocks say of weights and inputs: a file also names the layers that it left and how it packs. */
const said = {
  'compressed-tensors': ({ config_groups }) =>
    Object.values(config_groups).map(({ weights, input_activations }) => sorted({ weights, input_activations })),
  gptq: ({ bits, group_size, sym, desc_act, checkpoint_format, pack_dtype }) =>
    sorted({ bits, group_size, sym, desc_act, checkpoint_format, pack_dtype }),
  awq: ({ bits, group_size, zero_point, version }) => sorted({ bits, group_size, zero_point, version }),
  // Files list every field, configs those that are set; a file has the rows' length for groups of whole rows.
  quark: async (block, planned) =>
    (await planned(block)).map(({ spec }) =>
      sorted({ ...spec, group_size: spec.group_size === -1 ? 64 : spec.group_size }),
    ),
};

for (const format of Object.keys(said))
  test(`${format}: the block of a file is the converted config`, async (t) => {
    const quantizer = await quantizerFor(t);
    const folder = join(scratchFolder(t), 'in');
    mkdirSync(folder);
    const tensors = layers.map((name, seed) => [
      `${name}.weight`,
      { dtype: 'F32', shape: [64, 64], data: noise(64 * 64, seed + 1) },
    ]);
    writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(tensors)));
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ model_type: 'llama', num_hidden_layers: 1 }));
    const model = await modelFor(t, quantizer, folder);
    const refusals = ['config-invalid', 'format-unsupported', 'group-size-invalid', 'not-implemented'];
    const attempt = async (make) => {
      try {
        return await make();
      } catch (error) {
        assert.ok(refusals.includes(error.code), error.message);
        return null;
      }
    };
    const planned = async (block) =>
      (await quantizer.plan(model, block, { format: 'fake-quantized' })).tensors.filter(
        ({ action }) => action === 'quantize',
      );
    const target = join(folder, '../out');
    let both = 0;
    for (const layer of configs()) {
      const config = { global_quant_config: layer, exclude: [] };
      const file = await attempt(async () => {
        await quantizer.quantizeModel(model, config, { target, format, overwrite: true });
        return JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')).quantization_config;
      });
      const converted = await attempt(() => quantizer.convertConfig(config, format));
      if (!file || !converted) continue;
      if (converted.losses.some(({ severity }) => severity === 'warning')) continue;
      both++;
      const ours = await said[format](converted.config, planned);
      assert.deepEqual(ours, await said[format](file, planned), JSON.stringify(layer));
    }
    assert.ok(both >= 4, `${both} specs have both`);
  });
