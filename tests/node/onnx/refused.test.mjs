// ONNX: what no form can hold, broken files and values.
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { convolutions, twoLayers } from './model.mjs';
import { named } from './written.mjs';

test('weights that ONNX cannot hold: a preset leaves them, a config is refused with every name', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, convolutions());
  const groups = { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: 32 };
  await assert.rejects(() => quantizer.plan(model, { global_quant_config: { weight: groups } }), {
    code: 'format-unsupported',
    message: /only for matrices/,
  });
  await assert.rejects(
    () => quantizer.plan(model, { global_quant_config: { weight: { dtype: 'fp8_e4m3' } } }),
    (error) => {
      assert.equal(error.code, 'format-unsupported');
      assert.deepEqual(
        error.diagnostics.map(({ where }) => where),
        ['conv.weight', 'up.weight'],
      );
      return /stores only integers.*and 1 more/.test(error.message);
    },
  );
  const two = await modelFor(t, quantizer, twoLayers().bytes);
  for (const [config, options, expected] of [
    ['q4_k_m', {}, { code: 'format-unsupported', message: /GGUF.*int4_wo_32/ }],
    ['int8', { format: 'quark' }, { code: 'format-unsupported', message: /ONNX model/ }],
    ['int4_fp8', {}, { code: 'format-unsupported', message: /one spec/ }],
  ]) {
    await assert.rejects(() => quantizer.plan(two, config, options), expected, String(config));
  }
  await assert.rejects(
    quantizer.quantizeModel(
      two,
      { global_quant_config: { weight: { dtype: 'int8' } }, algo_config: [{ name: 'gptq' }] },
      {
        target: memoryStream().stream,
        calibration: { tokens: { data: [1, 2], shape: [1, 2] } },
      },
    ),
    { code: 'not-implemented', message: /ONNX models/ },
  );
  await assert.rejects(quantizer.languageModel(two).evaluate({ tokens: { data: [1, 2], shape: [1, 2] } }), {
    code: 'not-implemented',
  });
});

test('broken files and values are refused with their place; nothing is written', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const { bytes } = twoLayers();
  for (const length of [0, 1, 7, 100, bytes.length - 1]) {
    writeFileSync(join(folder, 'cut.onnx'), bytes.subarray(0, length));
    await assert.rejects(quantizer.open(join(folder, 'cut.onnx')), { name: 'QuantizationError', message: /cut\.onnx/ });
  }
  for (const location of ['../up.bin', '/etc/passwd', 'a\\b', 'C:x']) {
    await assert.rejects(quantizer.open(twoLayers({ location }).bytes), { code: 'file-invalid' }, location);
  }
  const nan = bytes.slice();
  const model = await modelFor(t, quantizer, nan);
  const { begin } = named(model.tensors, 'up');
  new DataView(nan.buffer).setUint32(begin + 4 * (96 * 5 + 7), 0x7fc00000, true);
  const target = join(folder, 'nan.onnx');
  for (const config of ['int4_wo_32', 'int8']) {
    await assert.rejects(quantizer.quantizeModel(model, config, { target }), {
      code: 'value-not-finite',
      where: 'up',
      message: /row 5, column 7/,
    });
  }
  const aborted = new AbortController();
  const run = quantizer.quantizeModel(await modelFor(t, quantizer, bytes), 'int8', {
    target,
    signal: aborted.signal,
    onProgress: () => aborted.abort(),
  });
  await assert.rejects(run, { name: 'AbortError' });
  assert.deepEqual(readdirSync(folder), ['cut.onnx']);
});

test('a 4-bit preset gives int8 per channel to weights whose operators cannot read 4 bits, and reports the shares', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, convolutions());
  for (const preset of ['int4_wo_32', 'int4_wo_128', 'uint4_wo_64']) {
    const plan = await quantizer.plan(model, preset);
    for (const name of ['conv.weight', 'up.weight']) {
      const { spec, reason, action } = named(plan.tensors, name);
      assert.deepEqual([action, spec.dtype, spec.qscheme], ['quantize', 'int8', 'per_channel'], `${preset} ${name}`);
      assert.match(reason.text, /int8 per channel instead of u?int4, because .*only for matrices/);
    }
    const note = plan.diagnostics.find(({ code }) => code === 'int8-instead');
    assert.match(note.message, /first of 2 weights \(of 2, 100 % of the quantized bytes\)/);
    assert.deepEqual(
      plan.files.map(({ bytes }) => bytes),
      (await quantizer.plan(model, 'int8')).files.map(({ bytes }) => bytes),
      'the same as int8',
    );
  }
});
