// Rotations of whole models through files: the same logits from any runtime, every tensor in its place.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../interop/safetensors_file.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from './scratch.mjs';

const length = 256;
const tokensOf = (name, sequences) => {
  const { data } = readTensors(join(files, `tiny-llama-reference/${name}_tokens.safetensors`)).get('input_ids');
  return { data: Int32Array.from(data.subarray(0, sequences * length)), shape: [sequences, length] };
};
const validation = tokensOf('validation', 8);

const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
const scaling_layers = { first_layer: [], middle_layers: [], last_layer: [] };
const configOf = (options = {}, rest = {}) => ({
  global_quant_config: { weight: int4 },
  exclude: ['*'],
  pre_quant_opt_config: [{ name: 'rotation', scaling_layers, ...options }],
  ...rest,
});

test('a rotated float model computes what it did, needs no tokens, and tells what it rewrote', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 1 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const { bitsPerByte: before } = await quantizer.evaluate(source, { tokens: validation });
  const original = readTensors(join(tinyLlama, 'model.safetensors'));
  for (const options of [
    { r2: true },
    { r2: true, random_r1: true, random_r2: true, seed: 5 },
    { rotation_size: 32 },
  ]) {
    const target = join(folder, JSON.stringify(options).replaceAll(/\W/g, ''));
    const report = await quantizer.quantizeModel(source, configOf(options), { target, format: 'fake-quantized' });
    const note = report.diagnostics.find(({ code }) => code === 'rotated');
    assert.match(note.message, new RegExp(`^${original.size} tensors`));
    const rotated = readTensors(join(target, 'model.safetensors'));
    assert.deepEqual([...rotated.keys()].sort(), [...original.keys()].sort());
    for (const [name, { data }] of rotated) {
      assert.notDeepEqual(data, original.get(name).data, name);
      if (name.includes('norm')) assert.ok(data.every((value) => value === 1));
    }
    const model = await modelFor(t, quantizer, target);
    const { bitsPerByte } = await quantizer.evaluate(model, { tokens: validation });
    assert.ok(Math.abs(bitsPerByte - before) < 1e-5, `${bitsPerByte}, before ${before}`);
  }
});

test('rotation goes with gptq into every format, the same bytes from any threads and into a stream', async (t) => {
  const folder = scratchFolder(t);
  const calibration = { tokens: tokensOf('calib', 2) };
  const config = configOf({ r2: true }, { exclude: ['lm_head'], algo_config: [{ name: 'gptq' }] });
  const losses = [];
  const outputs = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const source = await modelFor(t, quantizer, tinyLlama);
    const format = 'compressed-tensors';
    const target = join(folder, `${format}${threads}`);
    const seen = [];
    const onProgress = (progress) => seen.push(progress);
    await quantizer.quantizeModel(source, config, { target, format, calibration, onProgress });
    assert.equal(seen.at(-1).bytesDone, seen.at(-1).bytesTotal);
    assert.ok(seen.every(({ bytesDone }, i) => i === 0 || bytesDone >= seen[i - 1].bytesDone));
    outputs.push(readFileSync(join(target, 'model.safetensors')));
    const { stream, bytes } = memoryStream();
    await quantizer.quantizeModel(source, config, { target: stream, format, calibration });
    outputs.push(Buffer.from(bytes()));
    if (threads === 0) continue;
    for (const other of ['quark', 'fake-quantized']) {
      const path = join(folder, other);
      await quantizer.quantizeModel(source, config, { target: path, format: other, calibration });
      const model = await modelFor(t, quantizer, path);
      losses.push((await quantizer.evaluate(model, { tokens: validation })).bitsPerByte);
    }
    const model = await modelFor(t, quantizer, target);
    losses.push((await quantizer.evaluate(model, { tokens: validation })).bitsPerByte);
  }
  for (const output of outputs) assert.deepEqual(output, outputs[0]);
  for (const loss of losses) assert.ok(Math.abs(loss - losses[0]) < 1e-4, losses.join());
});

test('a head that is the embedding, and rotations that need a runtime, are refused before anything is written', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const target = join(folder, 'out');
  const refused = async (model, options, expected) => {
    await assert.rejects(quantizer.quantizeModel(model, configOf(options), { target }), expected);
    assert.ok(!readdirSync(folder).includes('out'));
  };
  await refused(source, { r4: true }, { code: 'not-implemented', where: '/pre_quant_opt_config/0/r4' });
  await refused(source, { r3: true }, { code: 'not-implemented', where: '/pre_quant_opt_config/0/r3' });
  const tied = join(folder, 'tied');
  cpSync(tinyLlama, tied, { recursive: true, filter: (path) => !path.includes('bf16') });
  const settings = JSON.parse(readFileSync(join(tied, 'config.json'), 'utf8'));
  writeFileSync(join(tied, 'config.json'), JSON.stringify({ ...settings, tie_word_embeddings: true }));
  const model = await modelFor(t, quantizer, tied);
  await refused(model, {}, { code: 'not-implemented', message: /tie_word_embeddings/ });
});
