// Algorithms that need calibration, over whole models: what they gain, that outputs hold it, and what is refused.
// Numbers: tests/files/tiny-llama/README.md.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';
import { parsed, safetensors } from '../written_model.mjs';

const length = 256;

const calibration = { tokens: tokensOf('calib', 8) };
const validation = tokensOf('validation', 24);

const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
const int8 = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const configOf = (weight, rest = {}) => ({ global_quant_config: { weight }, exclude: ['lm_head'], ...rest });
const gptq = { algo_config: [{ name: 'gptq' }] };

test('awq and gptq are better than rounding to nearest, in every format', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const run = async (name, config, format) => {
    const target = join(folder, name);
    const report = await quantizer.quantizeModel(source, config, { target, format, calibration });
    const model = await modelFor(t, quantizer, target);
    const { bitsPerByte } = await quantizer.languageModel(model).evaluate({ tokens: validation });
    return { report, bitsPerByte };
  };
  const plain = await run('plain', configOf(int4));
  assert.ok(plain.report.diagnostics.some(({ code }) => code === 'calibration-unused'));
  const awq = await run('awq', configOf(int4, { algo_config: [{ name: 'awq' }] }));
  assert.ok(awq.bitsPerByte < plain.bitsPerByte - 0.015, `awq ${awq.bitsPerByte}, plain ${plain.bitsPerByte}`);
  const losses = [];
  for (const format of ['compressed-tensors', 'quark', 'fake-quantized'])
    losses.push((await run(format, configOf(int4, gptq), format)).bitsPerByte);
  for (const loss of losses) assert.ok(Math.abs(loss - losses[0]) < 1e-4, losses.join());
  assert.ok(losses[0] < plain.bitsPerByte - 0.015, `gptq ${losses[0]}, plain ${plain.bitsPerByte}`);
});

test('gptaq, qronos, gpfq, cle and autosmoothquant are better than rounding to nearest', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const run = async (name, algo_config) => {
    const target = join(folder, name);
    await quantizer.quantizeModel(source, configOf(int4, { algo_config }), { target, calibration });
    const model = await modelFor(t, quantizer, target);
    return (await quantizer.languageModel(model).evaluate({ tokens: validation })).bitsPerByte;
  };
  const plain = await run('plain', []);
  for (const name of ['gptaq', 'qronos', 'gpfq', 'cle', 'autosmoothquant']) {
    const loss = await run(name, [{ name }]);
    assert.ok(loss < plain - 0.01, `${name} ${loss}, plain ${plain}`);
  }
});

test('awq scales v and o of grouped-query attention where the config names them; the model stays the same', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const few = { tokens: tokensOf('calib', 2) };
  const scaling = (prev_op, layer) => ({ scaling_layers: [{ prev_op, layers: [layer], inp: layer }] });
  const run = async (name, pair) => {
    const target = join(folder, name);
    const config = configOf(int8, { algo_config: [{ name: 'awq', ...pair }] });
    await quantizer.quantizeModel(source, config, { target, calibration: few, format: 'fake-quantized' });
    const model = await modelFor(t, quantizer, target);
    const { tensors } = await quantizer.compare(source, model);
    const { bitsPerByte } = await quantizer.languageModel(model).evaluate({ tokens: few.tokens });
    const errorOf = (layer) => tensors.find(({ name }) => name.endsWith(`layers.0.${layer}.weight`)).error.maxAbs;
    return { bitsPerByte, v: errorOf('self_attn.v_proj') };
  };
  const attention = await run('attention', scaling('self_attn.v_proj', 'self_attn.o_proj'));
  const mlp = await run('mlp', scaling('mlp.up_proj', 'mlp.down_proj'));
  assert.notEqual(attention.v, mlp.v, 'v_proj is scaled');
  // 8 bits round so little that the loss is that of the model, if o loses what v gains.
  const { bitsPerByte } = await quantizer.languageModel(source).evaluate({ tokens: few.tokens });
  for (const scaled of [attention, mlp]) assert.ok(Math.abs(scaled.bitsPerByte - bitsPerByte) < 0.002);
});

test('algorithms that also see the float model are planned with twice the activations', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 0, memoryBudgetBytes: 96 * 1024 * 1024 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = { data: new Int32Array(512 * length), shape: [512, length] };
  const needed = async (name) => {
    const config = configOf(int4, { algo_config: [{ name }] });
    const options = { target: join(folder, name), calibration: { tokens } };
    const error = await quantizer.quantizeModel(model, config, options).catch((thrown) => thrown);
    assert.equal(error.code, 'memory-budget');
    return /needs (\d+) bytes: (\d+) for activations/.exec(error.message).slice(1).map(Number);
  };
  const [plain, activations] = await needed('gptq');
  for (const name of ['gptaq', 'qronos', 'gpfq']) {
    const [all, both] = await needed(name);
    assert.equal(both, 2 * activations);
    assert.ok(all > plain + activations);
  }
});

test('algorithms of pre_quant_opt_config see the unquantized model, so their scales do not depend on dtypes', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const normsWith = async (dtype, key) => {
    const target = join(folder, `${dtype}-${key}`);
    const config = configOf({ ...int8, dtype }, { [key]: [{ name: 'smoothquant' }] });
    await quantizer.quantizeModel(source, config, { target, format: 'fake-quantized', calibration });
    const { header, data } = parsed(readFileSync(join(target, 'model.safetensors')));
    const norms = Object.keys(header).filter((tensor) => tensor.endsWith('layernorm.weight'));
    assert.ok(norms.length > 2);
    return norms.map((tensor) => [tensor, Buffer.from(data(tensor)).toString('hex')]);
  };
  const coarse = await normsWith('int4', 'pre_quant_opt_config');
  assert.deepEqual(coarse, await normsWith('int16', 'pre_quant_opt_config'));
  assert.notDeepEqual(coarse, await normsWith('int4', 'algo_config'));
});

test('smoothquant repairs 8-bit activations', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const losses = {};
  const smooth = { pre_quant_opt_config: [{ name: 'smoothquant', alpha: 0.5 }] };
  for (const [name, rest] of Object.entries({ plain: {}, smooth })) {
    const target = join(folder, name);
    await quantizer.quantizeModel(source, configOf(int8, rest), { target, calibration });
    const model = await modelFor(t, quantizer, target);
    losses[name] = (
      await quantizer.languageModel(model).evaluate({ tokens: validation, activations: 'int8' })
    ).bitsPerByte;
  }
  assert.ok(losses.smooth < losses.plain - 0.05, JSON.stringify(losses));
});

test('the same bytes from any number of threads and into any target; progress ends complete', async (t) => {
  const folder = scratchFolder(t);
  const few = { tokens: tokensOf('calib', 2) };
  const outputs = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    const target = join(folder, String(threads));
    const seen = [];
    const onProgress = (progress) => seen.push(progress);
    const report = await quantizer.quantizeModel(model, configOf(int4, gptq), { target, calibration: few, onProgress });
    outputs.push(readFileSync(join(target, 'model.safetensors')));
    assert.ok(seen.some(({ phase }) => phase === 'calibrate') && seen.some(({ phase }) => phase === 'optimize'));
    assert.ok(seen.every(({ bytesDone }, i) => i === 0 || bytesDone >= seen[i - 1].bytesDone));
    assert.equal(seen.at(-1).bytesDone, seen.at(-1).bytesTotal);
    assert.equal(seen.at(-1).index, seen.at(-1).count);
    for (const tensor of report.tensors)
      assert.equal(tensor.error === null, tensor.action === 'copy', `${tensor.name}: ${tensor.error}`);
    const { stream, bytes } = memoryStream();
    await quantizer.quantizeModel(model, configOf(int4, gptq), { target: stream, calibration: few });
    outputs.push(bytes());
    assert.equal(quantizer.liveObjects, 1, 'the model');
  }
  for (const output of outputs) assert.deepEqual(Buffer.from(output), outputs[0]);
});

test('what cannot be calibrated is refused before anything is written', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const target = join(folder, 'out');
  const refused = async (config, given, expected, source = model) => {
    await assert.rejects(quantizer.quantizeModel(source, config, { target, calibration: given }), expected);
    assert.ok(!readdirSync(folder).includes('out'));
  };
  await refused(configOf(int4, gptq), undefined, { code: 'argument-invalid', where: 'calibration', message: /gptq/ });
  const tooLong = { tokens: { data: new Int32Array(512), shape: [1, 512] } };
  await refused(configOf(int4, gptq), tooLong, { code: 'argument-invalid', message: /max_position_embeddings 256/ });
  const outside = { tokens: { data: Int32Array.of(1, 5000), shape: [1, 2] } };
  await refused(configOf(int4, gptq), outside, { code: 'argument-invalid', message: /token 5000/ });

  const small = { tokens: tokensOf('calib', 1) };
  const algorithms = (...algo_config) => configOf(int4, { algo_config });
  const layers = (prev_op, ...names) => ({ name: 'awq', scaling_layers: [{ prev_op, layers: names, inp: names[0] }] });
  await refused(algorithms(layers('mlp.fc1', 'mlp.fc2')), small, { code: 'config-invalid', message: /mlp\.fc1/ });
  await refused(algorithms(layers('input_layernorm', 'self_attn.q_proj', 'mlp.fc')), small, { message: /mlp\.fc/ });
  await refused(algorithms({ name: 'gptq' }, { name: 'awq' }), small, {
    code: 'config-invalid',
    where: '/algo_config/1',
  });
  await refused(algorithms({ name: 'gptq' }, { name: 'qronos' }), small, { code: 'config-invalid' });
  await refused(algorithms({ name: 'biascorrection' }), small, { code: 'config-invalid', message: /bias/ });
  await refused(algorithms({ name: 'gptq', inside_layer_modules: ['fc1'] }), small, { message: /fc1/ });

  const gguf = { target, format: 'gguf', calibration: small };
  await assert.rejects(quantizer.quantizeModel(model, configOf({ ...int4, group_size: 32 }, gptq), gguf));
  assert.ok(!readdirSync(folder).includes('out'));

  const family = join(folder, 'family');
  cpSync(tinyLlama, family, { recursive: true, filter: (path) => !path.includes('bf16') });
  const settings = JSON.parse(readFileSync(join(family, 'config.json'), 'utf8'));
  writeFileSync(join(family, 'config.json'), JSON.stringify({ ...settings, model_type: 'rwkv' }));
  const stranger = await modelFor(t, quantizer, family);
  await refused(configOf(int4, gptq), small, { code: 'not-implemented', message: /rwkv/ }, stranger);
});

/** Rewrites a file whose tensors are F32 or BF16 with F32 alone. */
function widen(path) {
  const { header, data } = parsed(new Uint8Array(readFileSync(path)));
  const tensors = Object.entries(header).filter(([name]) => name !== '__metadata__');
  const widened = tensors.map(([name, { dtype, shape }]) => {
    const bytes = data(name).buffer;
    const bits = dtype === 'BF16' ? Uint32Array.from(new Uint16Array(bytes), (half) => half * 0x10000) : null;
    return [name, { dtype: 'F32', shape, data: bits ? new Float32Array(bits.buffer) : new Float32Array(bytes) }];
  });
  writeFileSync(path, safetensors(Object.fromEntries(widened), { format: 'pt' }));
}

test('a quantized model is calibrated with its decoded values', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const calibration = { tokens: tokensOf('calib', 1) };
  const [codes, plain] = ['codes', 'plain'].map((name) => join(folder, name));
  const model = await modelFor(t, quantizer, tinyLlama);
  await quantizer.quantizeModel(model, 'mxfp4', { target: codes });
  // bfloat16 holds these values exactly.
  const bfloat16 = {
    global_quant_config: { weight: { dtype: 'bfloat16' } },
    exclude: ['*norm', '*embed_tokens', 'lm_head'],
  };
  const quantized = await modelFor(t, quantizer, codes);
  await quantizer.quantizeModel(quantized, bfloat16, { target: plain, format: 'fake-quantized' });
  // The values of codes are float32, and quark computes in the dtype of its source.
  widen(join(plain, 'model.safetensors'));
  const outputs = [];
  for (const source of [quantized, await modelFor(t, quantizer, plain)]) {
    const target = join(folder, `out-${outputs.length}`);
    await quantizer.quantizeModel(source, configOf(int4, gptq), { target, calibration, format: 'quark' });
    outputs.push(await modelFor(t, quantizer, target));
  }
  const { tensors } = await quantizer.compare(...outputs);
  assert.equal(tensors.length, 39);
  for (const { name, error } of tensors) assert.equal(error.maxAbs, 0, name);
});

test('a run can be aborted while it calibrates', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const stop = new AbortController();
  const onProgress = ({ phase }) => phase === 'calibrate' && stop.abort(new Error('enough'));
  const options = { target: join(folder, 'out'), calibration, signal: stop.signal, onProgress };
  await assert.rejects(quantizer.quantizeModel(model, configOf(int4, gptq), options), { message: 'enough' });
  assert.deepEqual(readdirSync(folder), []);
});

test('cle names the weight that is not finite, whichever of a pair it is', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const { header, data } = parsed(readFileSync(join(tinyLlama, 'model.safetensors')));
  const names = Object.keys(header).filter((name) => name !== '__metadata__');
  for (const spoiled of ['mlp.down_proj', 'mlp.up_proj', 'self_attn.o_proj', 'self_attn.v_proj']) {
    const folder = scratchFolder(t);
    cpSync(tinyLlama, folder, { recursive: true, filter: (path) => !path.endsWith('model.safetensors') });
    const name = `model.layers.1.${spoiled}.weight`;
    const tensors = Object.fromEntries(
      names.map((each) => [
        each,
        { dtype: header[each].dtype, shape: header[each].shape, data: new Uint8Array(data(each)) },
      ]),
    );
    const bytes = tensors[name].data;
    new DataView(bytes.buffer, bytes.byteOffset).setFloat32(4 * 77, Number.NaN, true);
    writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
    const model = await modelFor(t, quantizer, folder);
    const config = configOf(int8, { pre_quant_opt_config: [{ name: 'cle' }] });
    await assert.rejects(
      quantizer.quantizeModel(model, config, { target: memoryStream().stream, format: 'fake-quantized' }),
      { code: 'value-not-finite', message: `${name}: element 77 is NaN or infinite` },
    );
  }
});
