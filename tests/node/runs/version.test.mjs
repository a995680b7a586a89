// What written files say of the library that wrote them, once, also when a file is quantized again.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { twoLayers } from '../onnx/model.mjs';
import { memoryStream, modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const packageVersion = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')).version;
const key = 'wasmquant.version';

async function written(t, quantizer, source, config, format) {
  const out = memoryStream();
  await quantizer.quantizeModel(await modelFor(t, quantizer, source), config, { target: out.stream, format });
  return out.bytes();
}
const times = (bytes, text) => Buffer.from(bytes).toString('latin1').split(text).length - 1;

test('the library reports its version', async (t) => {
  const quantizer = await quantizerFor(t);
  assert.equal(quantizer.version.library, packageVersion);
});

test('safetensors and GGUF files have the version in their metadata', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [source, config, again, format] of [
    [`${tinyLlama}/model.safetensors`, 'bfloat16', 'int8', 'compressed-tensors'],
    [tinyLlama, 'f16', 'q8_0', 'gguf'],
  ]) {
    const first = await written(t, quantizer, source, config, format);
    const second = await written(t, quantizer, first, again, format);
    for (const bytes of [first, second]) {
      const { metadata } = await modelFor(t, quantizer, bytes);
      assert.equal(metadata[key], packageVersion);
      assert.equal(times(bytes, key), 1);
    }
  }
});

test('importance matrices have the version if their format has metadata', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const calibration = { tokens: { data: Int32Array.from({ length: 64 }, (_, i) => i), shape: [1, 64] } };
  assert.equal(times(await quantizer.languageModel(model).importance({ calibration }), key), 1);
  assert.equal(times(await quantizer.languageModel(model).importance({ calibration, format: 'dat' }), key), 0);
});

test('ONNX models have the version in their properties', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  const first = await written(t, quantizer, twoLayers().bytes, { layer_quant_config: { '*up*': { weight } } });
  const second = await written(t, quantizer, first, 'int8');
  for (const bytes of [first, second]) {
    const entry = Buffer.concat([
      Buffer.from([10, key.length]),
      Buffer.from(key),
      Buffer.from([18, packageVersion.length]),
      Buffer.from(packageVersion),
    ]);
    assert.equal(times(bytes, entry.toString('latin1')), 1);
    assert.equal(times(bytes, key), 1);
  }
});
