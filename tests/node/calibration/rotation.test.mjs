// Rotations of whole models through files: the same logits from any runtime, every tensor in its place.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { firstBlocks, tokensOf } from '../tiny_llama.mjs';
import { safetensors } from '../written_model.mjs';

const validation = tokensOf('validation', 8);

const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
const scaling_layers = { first_layer: [], middle_layers: [], last_layer: [] };
const configOf = (options = {}, rest = {}) => ({
  global_quant_config: { weight: int4 },
  exclude: ['*'],
  pre_quant_opt_config: [{ name: 'rotation', scaling_layers, ...options }],
  ...rest,
});

test('a rotated float model gives the same outputs, needs no tokens, and names the tensors it rewrote', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 1 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const { bitsPerByte: before } = await quantizer.languageModel(source).evaluate({ tokens: validation });
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
    const { bitsPerByte } = await quantizer.languageModel(model).evaluate({ tokens: validation });
    assert.ok(Math.abs(bitsPerByte - before) < 1e-5, `${bitsPerByte}, before ${before}`);
  }
});

test('rotation with gptq works in every format, with the same bytes from any threads and into a stream', async (t) => {
  const folder = scratchFolder(t);
  const calibration = { tokens: tokensOf('calib', 2) };
  const config = configOf({ r2: true }, { exclude: ['lm_head'], algo_config: [{ name: 'gptq' }] });
  const blocks = firstBlocks(t, 2);
  const losses = [];
  const outputs = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const source = await modelFor(t, quantizer, blocks);
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
      losses.push((await quantizer.languageModel(model).evaluate({ tokens: validation })).bitsPerByte);
    }
    const model = await modelFor(t, quantizer, target);
    losses.push((await quantizer.languageModel(model).evaluate({ tokens: validation })).bitsPerByte);
  }
  for (const output of outputs) assert.deepEqual(output, outputs[0]);
  for (const loss of losses) assert.ok(Math.abs(loss - losses[0]) < 1e-4, losses.join());
});

/** tiny-llama with its embedding for a head; `config`: of config.json. */
function tiedLlama(folder) {
  cpSync(tinyLlama, folder, { recursive: true, filter: (path) => !path.includes('bf16') });
  const settings = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...settings, tie_word_embeddings: true }));
  const tensors = readTensors(join(folder, 'model.safetensors'));
  tensors.delete('lm_head.weight');
  writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(tensors)));
  return folder;
}

test('a head that shares the embedding gets its own tensor', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tiedLlama(join(folder, 'tied')));
  const { bitsPerByte: before } = await quantizer.languageModel(source).evaluate({ tokens: validation });
  const plan = await quantizer.plan(source, configOf(), { format: 'fake-quantized' });
  const head = plan.tensors.find(({ name }) => name === 'lm_head.weight');
  assert.equal(head.layer, 'lm_head');
  assert.ok(plan.diagnostics.some(({ code }) => code === 'head-untied'));
  for (const [name, config] of [
    ['float', configOf({ r2: true })],
    [
      'int8',
      configOf(
        { r2: true },
        { global_quant_config: { weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 } }, exclude: [] },
      ),
    ],
  ]) {
    const target = join(folder, name);
    await quantizer.quantizeModel(source, config, { target, format: 'fake-quantized' });
    assert.equal(JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')).tie_word_embeddings, false);
    const tensors = readTensors(join(target, 'model.safetensors'));
    assert.notDeepEqual(tensors.get('lm_head.weight').data, tensors.get('model.embed_tokens.weight').data);
    const model = await modelFor(t, quantizer, target);
    const { bitsPerByte } = await quantizer.languageModel(model).evaluate({ tokens: validation });
    assert.ok(
      Math.abs(bitsPerByte - before) < (name === 'float' ? 1e-5 : 0.01) * before,
      `${name} ${bitsPerByte}, before ${before}`,
    );
  }
});

test('R4: evaluate rotates the input of down_proj, as config.json says', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const { bitsPerByte: before } = await quantizer.languageModel(source).evaluate({ tokens: validation });
  const original = readTensors(join(tinyLlama, 'model.safetensors'));
  const name = 'model.layers.0.mlp.down_proj.weight';
  for (const [format, config, most] of [
    ['fake-quantized', configOf({ r1: false, r4: true }), 1e-5],
    ['quark', configOf({ r1: true, r4: true }, { exclude: ['lm_head'] }), 0.1],
  ]) {
    const target = join(folder, format);
    const report = await quantizer.quantizeModel(source, config, { target, format });
    assert.ok(report.diagnostics.some(({ code, where }) => code === 'online-rotation' && where.endsWith('/r4')));
    const written = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'));
    assert.deepEqual(written.input_rotation, { 'mlp.down_proj': 'hadamard' });
    if (format === 'quark') assert.equal(written.quantization_config.algo_config[0].r4, true);
    else assert.notDeepEqual(readTensors(join(target, 'model.safetensors')).get(name).data, original.get(name).data);
    const model = await modelFor(t, quantizer, target);
    const { bitsPerByte } = await quantizer.languageModel(model).evaluate({ tokens: validation });
    assert.ok(Math.abs(bitsPerByte - before) < most, `${format} ${bitsPerByte}, before ${before}`);
    // Without the key, as other runtimes read it, the model is broken. Quark's block still says so.
    const { input_rotation, ...rest } = written;
    writeFileSync(join(target, 'config.json'), JSON.stringify(rest));
    const unread = quantizer.languageModel(await modelFor(t, quantizer, target)).evaluate({ tokens: validation });
    if (format === 'quark') {
      const place = { code: 'format-unsupported', where: '/quantization_config/algo_config/0' };
      await assert.rejects(unread, place);
      continue;
    }
    const broken = await unread;
    assert.ok(broken.bitsPerByte > before + 0.5, `${broken.bitsPerByte} with ${JSON.stringify(input_rotation)} unread`);
  }
});

test('rotations that need a runtime are refused before anything is written', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const target = join(folder, 'out');
  const refused = async (model, options, expected) => {
    await assert.rejects(quantizer.quantizeModel(model, configOf(options), { target }), expected);
    assert.ok(!readdirSync(folder).includes('out'));
  };
  await refused(source, { r4: true }, { code: 'format-unsupported', where: '/pre_quant_opt_config/0/r4' });
  await refused(source, { r3: true }, { code: 'not-implemented', where: '/pre_quant_opt_config/0/r3' });
});
