// "to load it": the lines that quantize prints, which are printed only where they work.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { graph, model, node, tensor } from '../onnx/model.mjs';
import { noise, safetensors } from '../written_model.mjs';
import { cli, scratch } from './process.mjs';

const layer = safetensors({ 'model.layers.0.up_proj.weight': { dtype: 'F32', shape: [32, 32], data: noise(1024) } });

/** Lines under "to load it" for a model with these files: name → text or bytes; `config`: of config.json. */
async function linesOf(t, config, { files = { 'model.safetensors': layer }, flags = ['--preset', 'int8'] } = {}) {
  const folder = scratch(t);
  const [source, out] = ['in', 'out'].map((name) => join(folder, name));
  mkdirSync(source);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(source, name), content);
  if (config !== null) writeFileSync(join(source, 'config.json'), JSON.stringify(config));
  const { code, stdout, stderr } = await cli(['quantize', source, '-o', out, ...flags]);
  assert.equal(code, 0, stderr);
  const [, text = ''] = /^to load it\n((?: {2}.*\n)*)/m.exec(stdout) ?? [];
  const lines = text.split('\n').map((line) => line.slice(2));
  return { out, lines: lines.slice(0, -1), stdout };
}

/** The two lines of Python. */
const loading = (name, out, more = '') => [
  `from transformers import ${name}`,
  `model = ${name}.from_pretrained(${JSON.stringify(out)}, dtype="auto"${more})`,
];

/** vLLM serves decoders in compressed-tensors. */
const serving = (out) => ['# pip install vllm', `vllm serve ${JSON.stringify(out)}`];

test('the class is the one that config.json names, with its head', async (t) => {
  for (const name of ['Gemma2ForCausalLM', 'BertForSequenceClassification', 'T5ForConditionalGeneration', 'ViTModel']) {
    const { lines, out } = await linesOf(t, { model_type: 'any', architectures: [name, 'Other'] });
    const served = name.endsWith('ForCausalLM') ? serving(out) : [];
    assert.deepEqual(lines, ['# pip install transformers compressed-tensors', ...loading(name, out), ...served]);
  }
});

test('every format of transformers names the class', async (t) => {
  for (const [format, preset, needs] of [
    ['awq', 'uint4_wo_32', 'gptqmodel'],
    ['gptq', 'int4_wo_32', 'gptqmodel'],
    ['quark', 'int8', 'amd-quark'],
    ['fake-quantized', 'int8', 'transformers'],
  ]) {
    const flags = ['--preset', preset, '--format', format];
    const { lines, out } = await linesOf(t, { architectures: ['OPTForCausalLM'] }, { flags });
    assert.deepEqual(lines.slice(-2), loading('OPTForCausalLM', out), format);
    assert.match(lines.at(-3), new RegExp(`^# pip install .*${needs}$`));
  }
});

test('transformers does not load the experts of the quark format: the lines name vLLM', async (t) => {
  const name = 'model.layers.0.mlp.experts.0.up_proj.weight';
  const files = { 'model.safetensors': safetensors({ [name]: { dtype: 'F32', shape: [32, 32], data: noise(1024) } }) };
  const config = { model_type: 'qwen3_moe', architectures: ['Qwen3MoeForCausalLM'] };
  const { lines, out } = await linesOf(t, config, { files, flags: ['--preset', 'int8', '--format', 'quark'] });
  assert.match(lines.at(-3), /transformers cannot load this file \(loader-limit\): .*vLLM/);
  assert.deepEqual(lines.slice(-2), serving(out));
});

test('without a class there are no lines of Python', async (t) => {
  for (const architectures of [undefined, [], 'BertModel', [7], ['Bert Model'], ['os;system']]) {
    const { lines } = await linesOf(t, { model_type: 'bert', architectures });
    assert.equal(lines.length, 1);
    assert.match(lines[0], /config\.json names no class/);
  }
});

test('a file that transformers cannot load has no lines of Python', async (t) => {
  const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
  const config = join(scratch(t), 'int4.json');
  writeFileSync(config, JSON.stringify({ global_quant_config: { weight } }));
  const hiera = { model_type: 'hiera', architectures: ['HieraForImageClassification'] };
  const { lines } = await linesOf(t, hiera, { flags: ['--config', config] });
  assert.equal(lines.length, 1);
  assert.match(lines[0], /^transformers cannot load this file \(loader-limit\): use int8 /);
});

test('packed zero points need an option of transformers; next to another scheme no line loads them', async (t) => {
  const tensor = () => ({ dtype: 'F32', shape: [64, 64], data: noise(4096) });
  const names = ['gate_proj', 'up_proj', 'down_proj'].map((name) => `model.layers.0.mlp.${name}.weight`);
  const files = { 'model.safetensors': safetensors(Object.fromEntries(names.map((name) => [name, tensor()]))) };
  const config = { model_type: 'llama', architectures: ['LlamaForCausalLM'] };
  const weight = (dtype, more) => ({ dtype, qscheme: 'per_channel', ch_axis: 0, symmetric: false, ...more });
  const input_tensors = { dtype: 'int8', qscheme: 'per_channel', ch_axis: -1, is_dynamic: true, symmetric: true };
  const ownConfig = (global_quant_config, layer_quant_config) => {
    const path = join(scratch(t), 'own.json');
    writeFileSync(path, JSON.stringify({ global_quant_config, layer_quant_config, exclude: [] }));
    return ['--config', path];
  };
  const groups = { qscheme: 'per_group', ch_axis: -1, group_size: 32 };
  const down = (layer) => ({ '*.down_proj': layer });
  const option = ', quantization_config=CompressedTensorsConfig(dequantize=True)';
  for (const [flags, outcome] of [
    [['--preset', 'uint4_wo_32'], option],
    [ownConfig({ weight: weight('uint4') }), option],
    [ownConfig({ weight: weight('uint8', groups) }), option],
    [ownConfig({ weight: weight('int4', groups) }), option],
    [ownConfig({ weight: weight('uint4', groups) }, down({ weight: { dtype: 'bfloat16' } })), option],
    [ownConfig({ weight: weight('uint4', groups) }, down({ input_tensors })), option],
    [ownConfig({ weight: weight('int8'), input_tensors }), ''],
    [['--preset', 'int4_wo_32', '--layer', '*.down_proj=int8'], ''],
    [['--preset', 'uint4_wo_32', '--layer', '*.down_proj=int8'], null],
    [['--preset', 'uint4_wo_32', '--layer', '*.down_proj=int4_wo_32'], null],
    [ownConfig({ weight: weight('uint4', groups) }, down({ weight: weight('uint4') })), null],
  ]) {
    const { lines, out, stdout } = await linesOf(t, config, { files, flags });
    const text = flags.join(' ');
    if (outcome === null) {
      assert.match(lines[0], /^transformers cannot load this file \(loader-limit\): load the file with vLLM; or give/);
      assert.deepEqual(lines.slice(1), serving(out), text);
      assert.match(stdout, /warning {2}model\.layers\.0\.mlp\.\w+ {2}loader-limit/, text);
      continue;
    }
    const [first, second] = loading('LlamaForCausalLM', out, outcome);
    const more = outcome === '' ? '' : ', CompressedTensorsConfig';
    assert.deepEqual(lines.slice(1), [first + more, second, ...serving(out)], text);
    assert.equal(stdout.includes('loader-option'), outcome !== '', text);
  }
});

test('without config.json the lines say so', async (t) => {
  const { lines } = await linesOf(t, null);
  assert.equal(lines.length, 1);
  assert.match(lines[0], /needs its config\.json in the same folder/);
});

test('files that transformers does not look for are named', async (t) => {
  const { lines } = await linesOf(t, { architectures: ['BertModel'] }, { files: { 'weights.safetensors': layer } });
  assert.deepEqual(lines, [
    'transformers looks for model.safetensors or model.safetensors.index.json; this is weights.safetensors.',
  ]);
});

test('code next to the weights is loaded by the class that auto_map names', async (t) => {
  const auto_map = { AutoConfig: 'configuration_own.OwnConfig', AutoModelForCausalLM: 'modeling_own.OwnForCausalLM' };
  const config = { architectures: ['OwnForCausalLM'], auto_map };
  const files = { 'model.safetensors': layer, 'modeling_own.py': '', 'configuration_own.py': '' };
  const { lines, out } = await linesOf(t, config, { files });
  assert.deepEqual(lines.slice(-2), loading('AutoModelForCausalLM', out, ', trust_remote_code=True'));

  const missing = await linesOf(t, config);
  assert.equal(missing.lines.length, 1);
  assert.match(missing.lines[0], /code is in modeling_own\.py \(auto_map\), which is not in the folder of the weights/);

  const elsewhere = { ...config, auto_map: { AutoModel: 'someone/own--modeling_own.OwnForCausalLM' } };
  const remote = await linesOf(t, elsewhere);
  assert.deepEqual(remote.lines.slice(-2), loading('AutoModel', remote.out, ', trust_remote_code=True'));

  const tokenizerOnly = {
    architectures: ['PhiForCausalLM'],
    auto_map: { AutoTokenizer: ['tokenization_own.Own', null] },
  };
  const known = await linesOf(t, tokenizerOnly);
  assert.deepEqual(known.lines.slice(1), [...loading('PhiForCausalLM', known.out), ...serving(known.out)]);
});

test('a graph is opened by ONNX Runtime, a GGUF file by programs that read GGUF', async (t) => {
  const folder = scratch(t);
  const linesOfFile = async (source, out, preset) => {
    const { code, stdout, stderr } = await cli(['quantize', source, '-o', join(folder, out), '--preset', preset]);
    assert.equal(code, 0, stderr);
    return /^to load it\n((?: {2}.*\n)*)/m.exec(stdout)[1];
  };
  const nodes = [node('MatMul', ['x', 'w'], ['y'])];
  const shapes = { inputs: [['x', 'F32', [1, 64]]], outputs: [['y', 'F32', [1, 64]]] };
  const tensors = [tensor('w', 'F32', [64, 64], noise(64 * 64))];
  writeFileSync(join(folder, 'model.onnx'), model(graph({ nodes, tensors, ...shapes })));
  const ofGraph = await linesOfFile(join(folder, 'model.onnx'), 'small.onnx', 'int8');
  assert.match(ofGraph, /InferenceSession\.create\(".*small\.onnx"\)/);
  assert.doesNotMatch(ofGraph, /llama|ollama/i);

  const ofModel = await linesOfFile('tests/files/tiny-llama', 'small.gguf', 'q8_0');
  assert.match(ofModel, /llama-completion -m ".*small\.gguf"/);
  assert.doesNotMatch(ofModel, /InferenceSession/);
});
