// Checkpoints that other tools quantized (tests/files/quantized, each written by its tool with the tool's own values next to
// it): compared, inspected, and as sources of other outputs.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { start } from '../cli/process.mjs';
import { files, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const folderOf = (tool) => join(files, 'quantized', tool);
const contentOf = (path) => parsed(new Uint8Array(readFileSync(path)));
const tools = ['gpt_oss', 'modelopt', 'mlx', 'bitsandbytes', 'compressed_tensors'];

/** float32 values of a tensor in BF16 or F32. */
function floatsOf({ header, data }, name) {
  const bytes = data(name).slice().buffer;
  if (header[name].dtype === 'F32') return new Float32Array(bytes);
  assert.equal(header[name].dtype, 'BF16', name);
  const words = Uint32Array.from(new Uint16Array(bytes), (bits) => bits * 65536);
  return new Float32Array(words.buffer);
}
const bfloat16 = (value) => {
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0];
  return new Float32Array(Uint32Array.of((bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000).buffer)[0];
};

for (const tool of tools)
  test(`${tool}: every weight equals the tool's own values`, async (t) => {
    const quantizer = await quantizerFor(t);
    const values = join(folderOf(tool), 'values.safetensors');
    const model = await modelFor(t, quantizer, folderOf(tool));
    const report = await quantizer.compare(await modelFor(t, quantizer, values), model);
    for (const { name, error } of report.tensors) assert.equal(error.maxAbs, 0, name);
    const compared = new Set(report.tensors.map(({ name }) => name));
    const weights = Object.keys(contentOf(values).header).filter((name) => /\.weight$|_proj$/.test(name));
    assert.ok(weights.length >= 2);
    for (const name of weights) assert.ok(compared.has(name), `${name} was compared`);
    // And the other way round, with tiles of the decoded side.
    const turned = await quantizer.compare(model, await modelFor(t, quantizer, values));
    for (const { name, error } of turned.tensors) assert.equal(error.maxAbs, 0, name);
    assert.ok(turned.diagnostics.some(({ code }) => code === 'reference-quantized'));
  });

const bfloat16Everywhere = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: [] };

for (const tool of ['modelopt', 'mlx', 'bitsandbytes', 'compressed_tensors'])
  test(`${tool}: as a source, weights are written as their values`, async (t) => {
    const quantizer = await quantizerFor(t);
    const target = join(scratchFolder(t), 'out');
    const model = await modelFor(t, quantizer, folderOf(tool));
    const report = await quantizer.quantizeModel(model, bfloat16Everywhere, { target, format: 'fake-quantized' });
    assert.ok(report.diagnostics.some(({ code }) => code === 'requantized'));
    const written = contentOf(join(target, 'model.safetensors'));
    const values = contentOf(join(folderOf(tool), 'values.safetensors'));
    const names = Object.keys(values.header).filter((name) => name.endsWith('.weight'));
    for (const name of names)
      assert.deepEqual(
        floatsOf(written, name).map((v) => v + 0),
        floatsOf(values, name).map((v) => (name === 'norm.weight' ? v : bfloat16(v)) + 0),
        name,
      );
    // Nothing of the former codes goes over but the scales of the cache, and no file says that there are any.
    const left = Object.keys(written.header).filter(
      (name) => !name.startsWith('__') && !names.includes(name) && !/\.[kv]_scale$/.test(name),
    );
    assert.deepEqual(left.sort(), tool === 'bitsandbytes' ? ['int8.bias', 'nf4.many_blocks.weight'] : []);
    const { model_type } = JSON.parse(readFileSync(join(folderOf(tool), 'config.json'), 'utf8'));
    const config = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'));
    assert.deepEqual(config, model_type ? { model_type } : {});
    assert.ok(!existsSync(join(target, 'hf_quant_config.json')));
  });

test('a decoded source and its values give the same codes', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1 };
  for (const [tool, layers] of Object.entries({
    mlx: ['affine.3', 'nvfp4', 'mxfp8'],
    modelopt: ['nvfp4_awq', 'int4_awq', 'fp8_blocks'],
    bitsandbytes: ['nf4.nested', 'nf4.blocks_across_rows', 'fp4.plain'],
  })) {
    const { header, data } = contentOf(join(folderOf(tool), 'values.safetensors'));
    const values = layers.map((layer) => {
      const name = `${layer}.weight`;
      return [name, { dtype: 'F32', shape: header[name].shape, data: new Float32Array(data(name).slice().buffer) }];
    });
    const config = {
      ...bfloat16Everywhere,
      layer_quant_config: Object.fromEntries(layers.map((layer) => [layer, { weight: int4 }])),
    };
    for (const format of ['compressed-tensors', 'quark']) {
      const written = async (source, name) => {
        const target = join(folder, `${tool}-${format}-${name}`);
        await quantizer.quantizeModel(await modelFor(t, quantizer, source), config, { target, format });
        return contentOf(join(target, 'model.safetensors'));
      };
      const expected = await written(safetensors(Object.fromEntries(values)), 'values');
      const codes = await written(folderOf(tool), 'codes');
      for (const name of Object.keys(expected.header).filter((key) => key[0] !== '_'))
        assert.deepEqual(codes.data(name), expected.data(name), `${tool} ${format} ${name}`);
    }
  }
});

test('inspect lists codes and scales as the file has them', async () => {
  const { code, stdout } = await start(['inspect', folderOf('mlx')]).done;
  assert.equal(code, 0);
  assert.match(stdout, /affine\.3\.weight/);
});

test('bitsandbytes: missing JSON is an error that names it', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'model');
  cpSync(folderOf('bitsandbytes'), folder, { recursive: true });
  rmSync(join(folder, 'values.safetensors'));
  const path = join(folder, 'model.safetensors');
  const bytes = readFileSync(path);
  bytes.write('!', bytes.indexOf('"nested_offset"'));
  writeFileSync(path, bytes);
  const model = await modelFor(t, quantizer, folder);
  await assert.rejects(
    quantizer.quantizeModel(model, bfloat16Everywhere, { target: join(folder, 'out'), format: 'fake-quantized' }),
    ({ code, where }) => code === 'file-invalid' && /quant_state\.bitsandbytes__(nf4|fp4)$/.test(where),
  );
});

test("experts of gpt-oss: one matrix each in quark, transformers' arrangement if they are left", async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, folderOf('gpt_oss'));
  const folder = scratchFolder(t);
  const written = async (format) => {
    const target = join(folder, format);
    await quantizer.quantizeModel(model, 'int8', { target, format, ...(format === 'quark' && { experts: 'include' }) });
    return contentOf(join(target, 'model.safetensors'));
  };
  const values = contentOf(join(folderOf('gpt_oss'), 'values.safetensors'));
  const [split, simulated, left] = [
    await written('quark'),
    await written('fake-quantized'),
    await written('compressed-tensors'),
  ];
  for (const part of ['gate_up_proj', 'down_proj']) {
    const name = `model.layers.0.mlp.experts.${part}`;
    const [experts, inputs, outputs] = values.header[name].shape;
    assert.deepEqual([...left.data(name)], [...values.data(name)], `${name} keeps its values`);
    const fused = floatsOf(simulated, name);
    for (let e = 0; e < experts; e++) {
      const layer = `model.layers.0.mlp.experts.${e}.${part}`;
      assert.deepEqual(split.header[`${layer}.weight`].shape, [outputs, inputs]);
      const codes = new Int8Array(split.data(`${layer}.weight`).slice().buffer);
      const scales = floatsOf(split, `${layer}.weight_scale`);
      for (let row = 0; row < outputs; row++)
        for (let column = 0; column < inputs; column++)
          assert.equal(
            Math.fround(codes[row * inputs + column] * scales[row]),
            fused[(e * inputs + column) * outputs + row],
            `${layer} ${row}, ${column}`,
          );
    }
  }
});

const perChannel = (dtype) => ({ dtype, qscheme: 'per_channel', ch_axis: 0, symmetric: !dtype.startsWith('u') });
const perGroup = (dtype) => ({
  dtype,
  qscheme: 'per_group',
  group_size: 32,
  ch_axis: -1,
  symmetric: !dtype.startsWith('u'),
});

for (const [format, specs] of Object.entries({
  'compressed-tensors': [
    perChannel('int2'),
    perChannel('int4'),
    perChannel('uint4'),
    perGroup('int4'),
    perGroup('uint4'),
  ],
  quark: [perChannel('int4'), perGroup('int2'), perGroup('int4'), perGroup('uint4')],
}))
  test(`${format}: weights whose codes do not fill their words come back with their own shape and values`, async (t) => {
    const quantizer = await quantizerFor(t);
    const folder = scratchFolder(t);
    for (const spec of specs)
      for (const shape of [
        [4, 90],
        [90, 64],
        [7, 32],
        [17, 33],
        [90, 1],
      ]) {
        const what = `${spec.dtype} ${spec.qscheme} [${shape}]`;
        if (spec.qscheme === 'per_group' && shape[1] % spec.group_size !== 0) continue;
        const weight = { dtype: 'F32', shape, data: noise(shape[0] * shape[1]) };
        const original = join(folder, 'original');
        mkdirSync(original, { recursive: true });
        writeFileSync(join(original, 'model.safetensors'), safetensors({ 'layer.weight': weight }));
        const config = { global_quant_config: { weight: { ...spec, scale_type: 'float32' } }, exclude: [] };
        const written = async (name, source, { config, format }) => {
          const target = join(folder, name);
          rmSync(target, { recursive: true, force: true });
          await quantizer.quantizeModel(await modelFor(t, quantizer, source), config, { target, format });
          return target;
        };
        // Quark stores no shape, so that nothing would tell the columns of such words.
        if (format === 'quark' && spec.qscheme === 'per_channel' && shape[1] % 8 !== 0) {
          await assert.rejects(written('codes', original, { config, format }), { code: 'format-unsupported' }, what);
          continue;
        }
        const codes = await written('codes', original, { config, format });
        const expected = await written('expected', original, { config, format: 'fake-quantized' });
        const { tensors } = await quantizer.compare(
          await modelFor(t, quantizer, expected),
          await modelFor(t, quantizer, codes),
        );
        assert.deepEqual(
          tensors.map(({ name, error }) => [name, error.maxAbs]),
          [['layer.weight', 0]],
          what,
        );
        const again = await written('again', codes, { config: bfloat16Everywhere, format: 'fake-quantized' });
        const found = contentOf(join(again, 'model.safetensors'));
        assert.deepEqual(found.header['layer.weight'].shape, shape, what);
        const values = contentOf(join(expected, 'model.safetensors'));
        assert.deepEqual(floatsOf(found, 'layer.weight'), floatsOf(values, 'layer.weight').map(bfloat16), what);
      }
  });

test('a stored shape that does not fit its packed words is an error that names it', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const original = join(folder, 'original');
  mkdirSync(original);
  writeFileSync(
    join(original, 'model.safetensors'),
    safetensors({ 'layer.weight': { dtype: 'F32', shape: [4, 90], data: noise(360) } }),
  );
  const target = join(folder, 'codes');
  const config = { global_quant_config: { weight: perChannel('int4') }, exclude: [] };
  await quantizer.quantizeModel(await modelFor(t, quantizer, original), config, {
    target,
    format: 'compressed-tensors',
  });
  const path = join(target, 'model.safetensors');
  const bytes = new Uint8Array(readFileSync(path));
  const { header } = parsed(bytes);
  const at =
    8 + Number(new DataView(bytes.buffer).getBigUint64(0, true)) + header['layer.weight_shape'].data_offsets[0];
  for (const lie of [
    [5n, 90n],
    [4n, 97n],
    [4n, 2n ** 62n],
    [-4n, -90n],
  ]) {
    for (const [i, value] of lie.entries()) new DataView(bytes.buffer).setBigInt64(at + 8 * i, value, true);
    writeFileSync(path, bytes);
    const model = await modelFor(t, quantizer, target);
    await assert.rejects(
      async () => quantizer.quantizeModel(model, bfloat16Everywhere, { target: join(folder, 'out') }),
      { code: 'shape-mismatch' },
      String(lie),
    );
  }
});
