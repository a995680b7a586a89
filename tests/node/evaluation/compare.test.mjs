// compare between any two formats: folders, GGUF files, quantized or not, either way round.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const grouped = (dtype, symmetric) => ({
  global_quant_config: {
    weight: {
      dtype,
      symmetric,
      qscheme: 'per_group',
      ch_axis: -1,
      group_size: 32,
      observer_cls: 'PerGroupMinMaxObserver',
    },
  },
  exclude: ['lm_head'],
});
const written = [
  ['packed', 'int4_wo_32', 'compressed-tensors'],
  ['int8', 'int8', 'compressed-tensors'],
  ['mxfp4', 'mxfp4', 'compressed-tensors'],
  ['nvfp4', 'nvfp4', 'compressed-tensors'],
  ['fp8', 'fp8', 'compressed-tensors'],
  ['quark', 'int4_wo_32', 'quark'],
  ['quark-int3', grouped('int3', true), 'quark'],
  ['quark-fp6', 'mxfp6_e3m2', 'quark'],
  ['awq', grouped('uint4', false), 'awq'],
  ['gptq', grouped('int4', true), 'gptq'],
  ['gptq-8', grouped('int8', true), 'gptq'],
  ['gptq-v2', grouped('uint4', false), 'gptq'],
  ['q8.gguf', 'q8_0', 'gguf'],
  ['q4.gguf', 'q4_k_m', 'gguf'],
];

test('every format is compared with every other', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const folder = scratchFolder(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const models = new Map([['plain', source]]);
  const reports = new Map();
  for (const [name, config, format] of written) {
    reports.set(name, await quantizer.quantizeModel(source, config, { target: join(folder, name), format }));
    models.set(name, await modelFor(t, quantizer, join(folder, name)));
  }
  const found = new Map();
  for (const [left, reference] of models) {
    for (const [right, quantized] of models) {
      const { tensors, diagnostics } = await quantizer.compare(reference, quantized);
      const pair = `${left} ${right}`;
      assert.equal(tensors.length, 39, pair);
      assert.deepEqual(
        diagnostics.filter(({ code }) => code !== 'reference-quantized'),
        [],
        pair,
      );
      found.set(pair, tensors);
      if (left === right)
        assert.ok(
          tensors.every(({ error }) => error.maxAbs === 0),
          pair,
        );
    }
  }
  for (const [name, report] of reports) {
    const errors = new Map(found.get(`plain ${name}`).map((tensor) => [tensor.name, tensor.error]));
    for (const tensor of report.tensors) {
      if (tensor.error === null) continue;
      const { maxAbs, sqnrDb } = errors.get(tensor.name);
      assert.equal(maxAbs, tensor.error.maxAbs, `${name} ${tensor.name}`);
      assert.ok(Math.abs(sqnrDb - tensor.error.sqnrDb) < 1e-6, `${name} ${tensor.name}`);
    }
  }
  const worst = (pair) => Math.max(...found.get(pair).map(({ error }) => error.maxAbs));
  assert.equal(worst('quark packed'), 0, 'the same numbers, stored in two ways');
  assert.equal(worst('q8.gguf awq'), worst('awq q8.gguf'));
  assert.equal(worst('gptq packed'), worst('packed gptq'));
  assert.equal(worst('gptq-v2 awq'), 0, 'the same codes and zero points');
  assert.ok(found.get('q8.gguf plain').some(({ name }) => name === 'blk.0.attn_q.weight'));
  const { diagnostics } = await quantizer.compare(models.get('awq'), models.get('gptq'));
  assert.deepEqual(
    diagnostics.map(({ code, severity }) => `${severity} ${code}`),
    ['note reference-quantized'],
  );
});

test('a quantized model as the source: decoded, tile by tile, into every format', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const folder = scratchFolder(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const spec = { weight: { dtype: 'bfloat16' } };
  for (const [name, config, format] of written.filter(([, , format]) => format !== 'gguf')) {
    const path = join(folder, name);
    await quantizer.quantizeModel(source, config, { target: path, format });
    const codes = await modelFor(t, quantizer, path);
    const outputs = [
      ['plain.gguf', 'f32', 'gguf', Infinity],
      ['q8.gguf', 'q8_0', 'gguf', 35],
      ['cast', { global_quant_config: spec }, 'fake-quantized', 45],
      ['packed', { ...grouped('int4', true), layer_quant_config: { lm_head: spec } }, 'compressed-tensors', 12],
      ['awq', grouped('uint4', false), 'awq', 12],
    ];
    for (const [output, again, to, least] of outputs) {
      const target = join(folder, `${name}-${output}`);
      const report = await quantizer.quantizeModel(codes, again, { target, format: to });
      const what = `${name} to ${output}`;
      assert.ok(
        report.diagnostics.some(({ code }) => code === 'requantized'),
        what,
      );
      const model = await modelFor(t, quantizer, target);
      const compared = await quantizer.compare(codes, model);
      assert.equal(compared.tensors.length, 39, what);
      for (const { name: tensor, error } of compared.tensors) {
        assert.ok(error.sqnrDb >= least, `${what}, ${tensor}: ${error.sqnrDb} dB`);
        const reported = report.tensors.find((each) => each.name === tensor);
        if (reported?.error) assert.equal(error.maxAbs, reported.error.maxAbs, `${what}, ${tensor}`);
      }
      if (output === 'cast') assert.equal(model.config.quantization_config, undefined);
    }
    if (format === 'awq' || format === 'gptq') continue; // they leave the head as it is
    // Codes of another format do not go over: what the config leaves out is written as values.
    const excluded = { ...grouped('int4', true), exclude: ['model.layers.0.mlp.up_proj', 'lm_head'] };
    const { tensors } = await quantizer.plan(codes, excluded);
    const left = tensors.find(({ name }) => name === 'model.layers.0.mlp.up_proj.weight');
    assert.match(left.reason.text, /excluded by .*up_proj.*decoded values are written as BF16/);
    assert.deepEqual(
      left.outputs.map(({ name, dtype }) => [name, dtype]),
      [['model.layers.0.mlp.up_proj.weight', 'BF16']],
    );
  }
});

test('the same bytes for any tiles of a decoded source', async (t) => {
  const folder = scratchFolder(t);
  const bytes = [];
  for (const options of [{ threads: 0 }, { threads: 3, memoryBudgetBytes: 128 * 1024 * 1024 }]) {
    const quantizer = await quantizerFor(t, options);
    const source = await modelFor(t, quantizer, tinyLlama);
    const path = join(folder, String(bytes.length), 'packed');
    mkdirSync(join(path, '..'));
    await quantizer.quantizeModel(source, 'uint4_wo_32', { target: path });
    const out = memoryStream();
    await quantizer.quantizeModel(await modelFor(t, quantizer, path), 'q4_k_m', { target: out.stream });
    bytes.push(out.bytes());
  }
  assert.deepEqual(bytes[0], bytes[1]);
});
