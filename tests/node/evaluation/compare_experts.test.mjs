// compare of experts that share a tensor with the matrices that they are split into, in both orientations.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const [experts, hidden, inner] = [3, 64, 96];
const float = (shape, seed) => {
  const count = shape.reduce((product, n) => product * n, 1);
  return { dtype: 'F32', shape, data: noise(count, seed) };
};
/** Where families keep their experts, and the shapes of [gate and up, down]. */
const families = {
  qwen3_moe: {
    architecture: 'Qwen3MoeForCausalLM',
    module: 'model.layers.0.mlp.experts',
    shapes: [
      [experts, 2 * inner, hidden],
      [experts, hidden, inner],
    ],
  },
  llama4_text: {
    architecture: 'Llama4ForCausalLM',
    module: 'model.layers.0.feed_forward.experts',
    shapes: [
      [experts, hidden, 2 * inner],
      [experts, inner, hidden],
    ],
  },
};

for (const [model_type, { architecture, module, shapes }] of Object.entries(families)) {
  test(`${model_type}: quark's matrices are compared with the tensor that held them`, async (t) => {
    const quantizer = await quantizerFor(t, { threads: 0 });
    const folder = scratchFolder(t);
    const source = join(folder, 'source');
    mkdirSync(source);
    const config = { model_type, architectures: [architecture], hidden_size: hidden, num_hidden_layers: 1 };
    writeFileSync(join(source, 'config.json'), JSON.stringify(config));
    const tensors = { gate_up_proj: float(shapes[0], 1), down_proj: float(shapes[1], 2) };
    const named = Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [`${module}.${name}`, tensor]));
    writeFileSync(join(source, 'model.safetensors'), safetensors(named));
    const model = await modelFor(t, quantizer, source);

    for (const [preset, format] of [
      ['int4_wo_32', 'quark'],
      ['int4_wo_32', 'compressed-tensors'],
      // transformers builds the experts of Llama 4 as one parameter, but for compressed-tensors.
      ...(model_type === 'llama4_text' ? [] : [['uint4_wo_32', 'awq']]),
    ]) {
      const target = join(folder, format);
      const written = await quantizer.quantizeModel(model, preset, {
        target,
        format,
        ...(format !== 'compressed-tensors' && { experts: 'include' }),
      });
      const quantized = await modelFor(t, quantizer, target);
      const there = await quantizer.compare(model, quantized);
      assert.deepEqual(there.diagnostics, [], format);
      assert.equal(there.tensors.length, 3 * experts);
      const figures = ({ name, mse, maxAbs, sqnr }) => ({ name, mse, maxAbs, sqnr });
      assert.deepEqual(there.tensors.map(figures), written.tensors.map(figures), format);
      const back = await quantizer.compare(quantized, model);
      assert.deepEqual(
        back.tensors.map(({ name, mse }) => [name, mse]),
        there.tensors.map(({ name, mse }) => [name, mse]),
      );
    }
  });
}
