// Codes of errors and diagnostics (src/core/codes/error.def, src/core/codes/diagnostics.def): each is reported by a source, provoked by
// a test, explained by the command line and by the guide.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { coreErrorCodes, libraryErrorCodes } from '../../dist/node.js';
import { readTensors, writeFloats } from '../interop/safetensors_file.mjs';
import { builtCodes, codeGuide } from '../setup/codes.mjs';
import { root } from '../setup/command.mjs';
import { filesBelow } from '../setup/source_files.mjs';
import { twoLayers } from './onnx_model.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from './scratch.mjs';

const { errors, diagnostics: remarks } = builtCodes();
const severitiesOf = new Map([
  ...errors.map(({ name }) => [name, 'error, warning']),
  ...remarks.map(({ name, severities }) => [name, severities]),
]);

/** `'code'` or `"code"` in a text; of lines of native tests also `warning code /place`. */
const names = (text, code) =>
  new RegExp(`['"\`]${code}['"\`]|(error|warning|note) ${code}[ "\\\\]|"${code} `).test(text);
const textOf = (folders, pattern) =>
  folders
    .flatMap((folder) => filesBelow(folder, pattern))
    .filter((file) => !file.includes('/generated/') && file !== 'tests/node/diagnostic_codes.test.mjs')
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');

test('every code of the tables is reported by a source', () => {
  const sources = textOf(['src', 'bindings', 'web/lib', 'web/cli'], /\.(cpp|h|ts)$/);
  const enumerated = (code) => sources.includes(`ErrorCode::${code.replaceAll('-', '_')}`);
  for (const { name } of [...errors, ...remarks])
    assert.ok(names(sources, name) || enumerated(name), `${name} is in the table, and no source reports it`);
});

const weight = (rest = {}) => ({ dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true, ...rest });
const group = (rest = {}) => weight({ dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, ...rest });
const quark = (spec, rest = {}) => ({ global_quant_config: { weight: spec }, ...rest });
const brevitas = (rest = {}) => ({
  dialect: 'brevitas',
  global_quant_config: { weight: { bit_width: 8 } },
  pre_quant_opt_config: [],
  ...rest,
});
const linear = { Linear: { module_qconfig: { weight_quant: { n_bits: 8 } } } };
const grid = { range_opt_method: 'grid' };
const layers = { first_layer: [], middle_layers: [], last_layer: [] };
const rotation = { name: 'rotation', scaling_layers: layers, r3: true };

/** A config that has the diagnostic. */
const configs = {
  'key-unknown': quark(weight({ dtpe: 1 })),
  'key-missing': quark({ dtype: 'mx', qscheme: 'per_group', group_size: 32 }),
  'key-conflict': quark(weight(), { layer_type_quant_config: { Linear: {}, 'nn.Linear': {} } }),
  'type-invalid': quark(7),
  'value-invalid': quark(group({ group_size: -7 })),
  'value-unknown': quark(weight({ dtype: 'int99' })),
  'preset-unknown': 'int4_wo_127',
  'pattern-invalid': quark(weight(), { exclude: ['re:('] }),
  'observer-mismatch': quark(weight({ observer_cls: 'PerTensorMinMaxObserver' })),
  'combination-unsupported': brevitas({
    global_quant_config: {
      weight: { quant_type: 'float_quant', symmetric: false, exponent_bit_width: 4, mantissa_bit_width: 3 },
    },
  }),
  'config-foreign': { quant_algo: 'FP8' },
  'too-many-problems': quark(weight(), { exclude: Array.from({ length: 300 }, () => 7) }),
  'key-ignored': quark(weight({ dtype: 'bfloat16', scale_type: 'float' })),
  'no-effect': brevitas({ pre_quant_opt_config: [{ name: 'Preprocess', trace_model: false }] }),
  'not-applied': { quant_method: 'gptq', bits: 4 },
  'symmetric-unsigned': quark(weight({ dtype: 'uint8' })),
  'zero-point-range': quark(group({ symmetric: false, zero_point_type: 'float32' })),
  'per-channel-ignored': {
    module_qconfig_map: {
      Linear: {
        module_qconfig: {
          weight_quant: {
            n_bits: 8,
            per_channel: true,
            range_estimator: 'cross_entropy',
            range_estimator_params: grid,
          },
        },
      },
    },
  },
  'names-matched-exactly': { module_qconfig_map: linear, excluded_modules: ['a.*'] },
  'default-has-no-effect': { default_qconfig: { weight_quant: { n_bits: 8 } } },
  'default-preprocess': { dialect: 'brevitas', global_quant_config: { weight: { bit_width: 8 } } },
  'preprocess-order': brevitas({ pre_quant_opt_config: [{ name: 'ActivationEqualization' }, { name: 'Preprocess' }] }),
  'equalization-folded': brevitas({
    pre_quant_opt_config: [{ name: 'Preprocess' }, { name: 'ActivationEqualization' }],
  }),
  'bias-format': { global_quant_config: { weight: weight(), bias: weight({ qscheme: 'per_tensor' }) } },
  'needs-calibration': brevitas({ global_quant_config: { weight: { bit_width: 8 }, input_tensors: {} } }),
  'rotation-kv-cache': quark(weight(), {
    algo_config: [rotation],
    kv_cache_quant_config: { '*k_proj': { output_tensors: { dtype: 'fp8_e4m3' } } },
  }),
  'nothing-quantized': { global_quant_config: { input_tensors: weight({ qscheme: 'per_tensor' }) } },
  'json-invalid': '{',
  'dtype-unsupported': quark(weight({ dtype: 'uint16' })),
  'not-implemented': brevitas({ pre_quant_opt_config: [{ name: 'Preprocess', channel_splitting_ratio: 0.1 }] }),
};

test('every code of a config is provoked by one, with a severity of the table', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [code, config] of Object.entries(configs)) {
    const found = quantizer.checkConfig(config);
    assert.ok(
      found.some((diagnostic) => diagnostic.code === code),
      `${code}: ${JSON.stringify(found)}`,
    );
    for (const { code: known, severity } of found)
      assert.ok(severitiesOf.get(known)?.split(', ').includes(severity), `${known} is of severity ${severity}`);
  }
  const own = quark(weight(), { dialect: 'quark' });
  assert.equal(quantizer.checkConfig(own, { dialect: 'awq' })[0].code, 'dialect-mismatch');
});

const has = (list, code) =>
  assert.ok(
    list.some((item) => item.code === code),
    `${code}: ${JSON.stringify(list)}`,
  );

test('a tensor that the index does not mention is kept, with tensor-unmapped', async (t) => {
  const folder = scratchFolder(t);
  cpSync(join(tinyLlama, 'bf16'), folder, { recursive: true });
  const path = join(folder, 'model.safetensors.index.json');
  const index = JSON.parse(readFileSync(path, 'utf8'));
  const [name] = Object.keys(index.weight_map);
  delete index.weight_map[name];
  writeFileSync(path, JSON.stringify(index));
  const model = await modelFor(t, await quantizerFor(t), folder);
  has(model.diagnostics, 'tensor-unmapped');
  assert.ok(model.tensors.some((tensor) => tensor.name === name));
});

test('nodes that are quantized already are named when the model is opened, with quantized-already', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = new File([twoLayers().bytes], 'model.onnx');
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  await quantizer.quantizeModel(model, 'int8', { target: out.stream });
  const again = await modelFor(t, quantizer, new File([out.bytes()], 'model_q8.onnx'));
  has(again.diagnostics, 'quantized-already');
});

const calibrated = { global_quant_config: { weight: group() }, exclude: ['lm_head'], algo_config: [{ name: 'gptq' }] };
const tokens = { data: Int32Array.from({ length: 64 }, (_, i) => i), shape: [1, 64] };

test('a calibrated run that should be resumed says not-resumable', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const target = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(model, calibrated, { target, resume: true, calibration: { tokens } });
  has(report.diagnostics, 'not-resumable');
});

test('layers that saw only zeros are named, with calibration-blind', async (t) => {
  const tensors = readTensors(join(tinyLlama, 'model.safetensors'));
  tensors.get('model.embed_tokens.weight').data.fill(0);
  const folder = scratchFolder(t);
  writeFloats(join(folder, 'model.safetensors'), tensors);
  writeFileSync(join(folder, 'config.json'), readFileSync(join(tinyLlama, 'config.json')));
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, folder);
  const target = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(model, calibrated, { target, calibration: { tokens } });
  has(report.diagnostics, 'calibration-blind');
});

test('every other code is provoked by a test, which names it', () => {
  const tests = textOf(['tests/node', 'tests/native'], /\.(mjs|cpp|h)$/);
  const here = readFileSync(import.meta.filename, 'utf8');
  for (const { name } of remarks)
    assert.ok(name in configs || names(tests, name) || here.includes(`, '${name}')`), `no test provokes ${name}`);
});

test('the types have the codes of the tables', () => {
  const of = (reporter) => errors.filter((row) => row.reporter === reporter).map(({ name }) => name);
  assert.deepEqual(coreErrorCodes, of('core'));
  assert.deepEqual(libraryErrorCodes, of('library'));
  const twice = [...errors, ...remarks].map(({ name }) => name).filter((name, i, all) => all.indexOf(name) !== i);
  assert.deepEqual(twice, []);
});

test('every text is a sentence, or two', () => {
  for (const { name, meaning, advice } of [...errors, ...remarks])
    for (const text of [meaning, advice])
      assert.match(text, /^([A-Z`]|wasmquant|transformers|vLLM|aihwkit|llama\.cpp|r3).*\.$/, `${name}: ${text}`);
});

test('the guide is made of the tables: node tests/setup/codes.mjs writes it', () => {
  assert.equal(
    readFileSync(join(root, 'web/docs/diagnostics.md'), 'utf8'),
    codeGuide({ errors, diagnostics: remarks }),
  );
});

const cli = join(root, 'dist/cli.js');

test('explain prints the rows of a code, all codes, and similar ones of a wrong code', () => {
  const run = (...args) => execFileSync(process.execPath, [cli, 'explain', ...args], { encoding: 'utf8' });
  const { codes } = JSON.parse(run('--json'));
  assert.deepEqual(
    codes.map(({ code }) => code),
    [...errors, ...remarks].map(({ name }) => name),
  );
  const row = remarks.find(({ name }) => name === 'pattern-unused');
  const text = run('pattern-unused');
  for (const part of [row.name, row.meaning, row.advice]) assert.ok(text.includes(part), part);
  const wrong = spawnSync(process.execPath, [cli, 'explain', 'pattern-used'], { encoding: 'utf8' });
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /there is no code "pattern-used"[\s\S]*did you mean pattern-invalid, pattern-unused/);
});
