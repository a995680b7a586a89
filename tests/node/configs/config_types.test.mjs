// Schemas, types and builders of configs: all say what the core's parsers say.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Ajv2020 from 'ajv/dist/2020.js';
import * as wasmquant from '../../../dist/node.js';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const dist = join(import.meta.dirname, '../../../dist');
const schemas = Object.fromEntries(
  ['quark', 'brevitas', 'aihwkit', 'gguf'].map((dialect) => [
    dialect,
    JSON.parse(readFileSync(join(dist, `schema/${dialect}.json`), 'utf8')),
  ]),
);
const validators = Object.fromEntries(
  Object.entries(schemas).map(([dialect, schema]) => [dialect, new Ajv2020({ allErrors: true }).compile(schema)]),
);

test('every preset fits the schema of its dialect', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const { name, config } of quantizer.presets()) {
    const validate = validators[config.dialect ?? 'quark'];
    assert.ok(validate(config), `${name}: ${JSON.stringify(validate.errors)}`);
    const completed = quantizer.parseConfig(config).config;
    assert.ok(validate(completed), `${name}, completed: ${JSON.stringify(validate.errors)}`);
  }
});

test('schemas and parsers agree on keys, kinds and words', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = (spec) => ({ global_quant_config: { weight: spec } });
  const brevitas = (spec) => ({ dialect: 'brevitas', pre_quant_opt_config: [], global_quant_config: { weight: spec } });
  const cases = {
    quark: [
      [weight({ dtype: 'int8' }), true],
      [weight([{ dtype: 'fp8_e4m3' }, { dtype: 'int4' }]), true],
      [weight({ dtype: 'int99' }), false],
      [weight({ dtype: 'int8', qschem: 'per_tensor' }), false],
      [weight({ dtype: 'int8', symmetric: 'yes' }), false],
      [weight({ dtype: 'int8', axis: 0, qscheme: 'per_channel' }), true],
      [weight({ dtype: 'int8', grid: { divisor: 'largest_code' } }), true],
      [weight({ dtype: 'int8', grid: { divisor: 'x' } }), false],
      [{ ...weight({ dtype: 'int8' }), exclude: 'lm_head' }, false],
      [{ ...weight({ dtype: 'int8' }), exclude: [''] }, false],
      [{ ...weight({ dtype: 'int8' }), layer_types: { a: 'Linear' } }, true],
      [{ ...weight({ dtype: 'int8' }), layer_types: { a: 'Liner' } }, false],
      [{ ...weight({ dtype: 'int8' }), resolution: 'whole' }, false],
      [{ ...weight({ dtype: 'int8' }), layer_quant_config: { a: { weigth: null } } }, false],
      [{ ...weight({ dtype: 'int8' }), algo_config: [{ name: 'gptq', desc_act: null, num_attention_heads: 8 }] }, true],
      [{ ...weight({ dtype: 'int8' }), pre_quant_opt_config: { name: 'smooth', alpha: 0.5 } }, true],
      [{ ...weight({ dtype: 'int8' }), algo_config: [{ name: 'gptqq' }] }, false],
      [{ ...weight({ dtype: 'int8' }), algo_config: [{ name: 'gptq', alpha: 0.5 }] }, false],
      [{ ...weight({ dtype: 'int8' }), algo_config: [{ name: 'gptaq', alpha: '1' }] }, false],
      [{ ...weight({ dtype: 'int8' }), algo_config: [{ desc_act: true }] }, false],
    ],
    gguf: [
      [{ dialect: 'gguf', recipe: 'q4_0', algo_config: [{ name: 'awq' }] }, true],
      [{ dialect: 'gguf', recipe: 'q4_0', algo_config: [{ name: 'awk' }] }, false],
    ],
    brevitas: [
      [brevitas({ bit_width: 4 }), true],
      [brevitas({ bit_width: 4, quant_type: 'float' }), false],
      [brevitas({ dtype: 'int8' }), false],
    ],
    aihwkit: [
      [
        { dialect: 'aihwkit', module_qconfig_map: { Linear: { module_qconfig: { weight_quant: { n_bits: 4 } } } } },
        true,
      ],
      [{ dialect: 'aihwkit', module_qconfig_map: { Linear: { qconfig: {} } } }, false],
      [{ dialect: 'aihwkit', default_qconfig: { weight_quant: { n_bits: '8' } } }, false],
    ],
  };
  for (const [dialect, rows] of Object.entries(cases)) {
    for (const [config, isValid] of rows) {
      const text = JSON.stringify(config);
      assert.equal(validators[dialect](config), isValid, text);
      const errors = quantizer.checkConfig(config).filter(({ severity }) => severity === 'error');
      assert.equal(errors.length === 0, isValid, `${text}: ${errors[0]?.message}`);
    }
  }
});

/** Property names of an interface and those it extends. */
function propertiesOf(text, name) {
  const [, base, body] = new RegExp(`interface ${name}(?: extends (\\w+))? \\{\\n([\\s\\S]*?)\\n\\}`).exec(text);
  const own = [...body.matchAll(/^ {4}(?:'([^']+)'|([\w$]+))\??:/gm)].map(([, quoted, plain]) => quoted ?? plain);
  return base ? [...own, ...propertiesOf(text, base)] : own;
}

test('types have the keys of the schemas', () => {
  const types = readFileSync(join(dist, 'generated/config_types.d.ts'), 'utf8');
  const keysOf = (schema) =>
    Object.entries(schema.properties)
      .filter(([, { deprecated }]) => !deprecated)
      .map(([key]) => key)
      .sort();
  const { quark, brevitas, aihwkit, gguf } = schemas;
  for (const [name, schema] of [
    ['GgufConfig', gguf],
    ['QuarkConfig', quark],
    ['QuarkLayerConfig', quark.$defs.QLayerConfig],
    ['QuantizationSpec', quark.$defs.QTensorConfig],
    ['BrevitasConfig', brevitas],
    ['BrevitasLayerConfig', brevitas.$defs.BrevitasLayerConfig],
    ['BrevitasTensorConfig', brevitas.$defs.BrevitasTensorConfig],
    ['AihwkitConfig', aihwkit],
    ['AihwkitLayerConfig', aihwkit.$defs.QuantizationConfig],
    ['AihwkitModuleConfig', aihwkit.$defs.QuantizedModuleConfig],
    ['AihwkitWeightConfig', aihwkit.$defs.WeightQuantConfig],
    ['AihwkitActivationConfig', aihwkit.$defs.ActivationQuantConfig],
  ])
    assert.deepEqual(propertiesOf(types, name).sort(), keysOf(schema), name);
});

test('built configs are clean, and plan what they say', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const { perTensor, perChannel, perGroup, microscaling, nvfp4, progressive, dynamicInput } = wasmquant;
  const mixed = wasmquant.quarkConfig(perGroup('int4', 32), {
    layers: { '*.down_proj': perChannel('int8'), '*.o_proj': { weight: perGroup('uint4', 32, { symmetric: false }) } },
    layerTypes: { Embedding: perChannel('int8') },
    inputs: dynamicInput('int8'),
  });
  for (const config of [
    mixed,
    wasmquant.quarkConfig(microscaling('fp4')),
    wasmquant.quarkConfig(nvfp4()),
    wasmquant.quarkConfig(progressive(perTensor('fp8_e4m3'), perChannel('int4'))),
    wasmquant.aihwkitConfig(4),
    wasmquant.brevitasConfig(4),
  ]) {
    assert.deepEqual(quantizer.checkConfig(config), []);
    assert.ok(validators[config.dialect ?? 'quark'](config));
  }
  const { tensors } = await quantizer.plan(model, mixed, { format: 'fake-quantized' });
  const dtypeOf = (ending) => tensors.find(({ name }) => name.endsWith(ending)).spec.dtype;
  assert.equal(dtypeOf('0.mlp.down_proj.weight'), 'int8');
  assert.equal(dtypeOf('0.self_attn.o_proj.weight'), 'uint4');
  assert.equal(dtypeOf('0.self_attn.q_proj.weight'), 'int4');
  assert.equal(dtypeOf('embed_tokens.weight'), 'int8');
});

test('an embedding that is also the output layer gets a warning', async (t) => {
  const quantizer = await quantizerFor(t);
  const { safetensors, noise } = await import('../written_model.mjs');
  const tensors = (names) =>
    safetensors(
      Object.fromEntries(names.map((name) => [name, { dtype: 'F32', shape: [64, 64], data: noise(4096, 5) }])),
    );
  const config = { layer_type_quant_config: { Embedding: { weight: { dtype: 'int8' } } } };
  const codes = async (names) => {
    const model = await modelFor(t, quantizer, tensors(names));
    const { diagnostics } = await quantizer.plan(model, config, { format: 'fake-quantized' });
    return diagnostics.map(({ code }) => code).filter((code) => code !== 'output-larger'); // a header for little
  };
  assert.deepEqual(await codes(['model.embed_tokens.weight', 'model.layers.0.q_proj.weight']), ['tied-weights']);
  assert.deepEqual(await codes(['model.embed_tokens.weight', 'lm_head.weight']), []);
});

test('dynamic inputs are written if the format can express them', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const { quantizationConfig, diagnostics } = await quantizer.plan(model, 'ptpc_fp8');
  assert.deepEqual(
    diagnostics.filter(({ severity }) => severity !== 'note'),
    [],
  );
  const { input_activations: inputs } = quantizationConfig.config_groups.group_0;
  assert.equal(inputs.strategy, 'token');
  assert.equal(inputs.dynamic, true);
  assert.equal(inputs.type, 'float');
  const left = await quantizer.plan(model, 'mxfp4_mxfp6_e2m3');
  assert.equal(left.quantizationConfig.config_groups.group_0.input_activations, null);
  assert.ok(left.diagnostics.some(({ code, where }) => code === 'not-applied' && where.endsWith('input_tensors')));
});

test('configs in the guides are clean, and every preset is in a table', async (t) => {
  const quantizer = await quantizerFor(t);
  const [scheme, config] = ['choose-a-scheme', 'write-a-config'].map((guide) =>
    readFileSync(join(dist, `../web/docs/${guide}.md`), 'utf8'),
  );
  const blocks = [...`${scheme}${config}`.matchAll(/^```json\n([\s\S]*?)^```/gm)].map(([, text]) => text);
  assert.ok(blocks.length >= 1);
  for (const text of blocks) assert.deepEqual(quantizer.checkConfig(text), [], text);
  const names = quantizer.presets().map(({ name }) => name);
  for (const name of names) assert.ok(scheme.includes(`\`${name}\``), `${name} is in no table of the guide`);
});
