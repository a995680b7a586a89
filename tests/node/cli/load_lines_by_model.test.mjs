// How to load what was written is decided by the model, and is the same on the command line and on the page.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { twoLayers } from '../onnx/model.mjs';
import { modelFor, quantizerFor } from '../scratch.mjs';
import { gguf, noise, safetensors } from '../written_model.mjs';
import { cli, scratch, tinyLlama } from './process.mjs';
import { moduleOf } from './web_module.mjs';

const matrix = (name) => safetensors({ [name]: { dtype: 'F32', shape: [64, 64], data: noise(4096) } });
const layer = matrix('model.layers.0.mlp.up_proj.weight');
const encoderLayer = matrix('encoder.layer.0.output.dense.weight');
const own = {
  architectures: ['OwnForCausalLM'],
  auto_map: { AutoModelForCausalLM: 'modeling_own.OwnForCausalLM' },
};
const modules = [
  { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
  { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
];
const sentenceFiles = {
  'model.safetensors': encoderLayer,
  'config.json': { model_type: 'bert', architectures: ['BertModel'] },
  'modules.json': modules,
  '1_Pooling/config.json': { word_embedding_dimension: 64, pooling_mode_mean_tokens: true },
};
const folder = (config, bytes = layer, name = 'model.safetensors') => ({
  [name]: bytes,
  ...(config && { 'config.json': config }),
});
const ggufFile = (architecture, tensor, more = {}) => ({
  'm.gguf': gguf({ ...(architecture && { 'general.architecture': architecture }), ...more }, tensor),
});

/** Files of the source, preset, then what the lines must have and must not have. `format` where it is not the preset's. */
const models = {
  llama: [
    tinyLlama,
    'int4_wo_32',
    [/LlamaForCausalLM\.from_pretrained/, /^vllm serve "\.\/m-int4_wo_32"$/m],
    [/Sentence/],
  ],
  'llama as GGUF': [
    tinyLlama,
    'q8_0',
    [/^llama-completion -m/m, /^ollama run/m, /^lms import/m, /Wllama/],
    [/llama-cli/],
  ],
  'code that is not in the folder': [folder(own), 'int8', [/modeling_own\.py/], [/from transformers/, /vllm/]],
  'no class': [folder({ model_type: 'bert' }), 'int8', [/names no class/], [/from transformers/, /AutoModel/, /vllm/]],
  'no config.json': [folder(null), 'int8', [/needs its config\.json/], [/from transformers/, /vllm/]],
  'vision encoder': [
    folder({ model_type: 'vit', architectures: ['ViTModel'] }),
    'int8',
    [/ViTModel\.from_pre/],
    [/vllm/],
  ],
  'own values': [
    folder({ architectures: ['OPTForCausalLM'] }),
    'int8',
    [/OPTForCausalLM\.from/],
    [/vllm/],
    'fake-quantized',
  ],
  'sentence encoder': [
    sentenceFiles,
    'int8',
    [
      /^model = SentenceTransformer\(".*", model_kwargs=\{.*CompressedTensorsConfig\(dequantize=True\)\}\)$/m,
      /BertModel\.from/,
    ],
    [/vllm/],
  ],
  'sentence encoder, own values': [
    sentenceFiles,
    'int8',
    [/^model = SentenceTransformer\("[^,]*"\)$/m],
    [/dequantize=/],
    'fake-quantized',
  ],
  'part of a pipeline': [
    folder({ _class_name: 'FluxTransformer2DModel' }, layer, 'diffusion_pytorch_model.safetensors'),
    'int8',
    [/diffusers does not read compressed-tensors; .*--format fake-quantized/],
    [/import/, /transformers needs/],
  ],
  'part of a pipeline, own values': [
    folder({ _class_name: 'FluxTransformer2DModel' }, layer, 'diffusion_pytorch_model.safetensors'),
    'int8',
    [/from diffusers import FluxTransformer2DModel\nmodel = FluxTransformer2DModel\.from_pretrained/],
    [/transformers import/],
    'fake-quantized',
  ],
  onnx: [
    { 'm.onnx': twoLayers().bytes },
    'int8',
    [/onnxruntime-node/, /onnxruntime-web/, /onnxruntime\.InferenceSession/],
    [/transformers/],
  ],
  'vision projector': [
    ggufFile('clip', 'v.blk.0.attn_q.weight'),
    'q8_0',
    [/^llama-mtmd-cli -m TEXT\.gguf --mmproj "/m],
    [/llama-c/, /Wllama/, /ollama/],
  ],
  'GGUF encoder': [
    ggufFile('nomic-bert', 'blk.0.attn_q.weight'),
    'q8_0',
    [/^llama-embedding/m],
    [/llama-c/, /ollama/, /lms/],
  ],
  'T5 encoder': [
    ggufFile('t5encoder', 'enc.blk.0.attn_q.weight'),
    'q8_0',
    [/^llama-embedding/m],
    [/llama-c/, /ollama/],
  ],
  'decoder that pools': [
    ggufFile('qwen3', 'blk.0.attn_q.weight', { 'qwen3.pooling_type': '3' }),
    'q8_0',
    [/^llama-embedding/m],
    [/llama-c/],
  ],
  ...Object.fromEntries(
    ['flux', 'sd1', 'sd3', 'sdxl', 'lumina2', 'wan', 'qwen_image', 'ltxv', 'hidream'].map((name) => [
      name,
      [
        ggufFile(name, 'double_blocks.0.img_attn.qkv.weight'),
        'q8_0',
        [/ComfyUI/, /sd-cli/],
        [/llama/, /Wllama/, /ollama/],
      ],
    ]),
  ),
  'text by diffusion': [
    ggufFile('llada', 'blk.0.attn_q.weight'),
    'q8_0',
    [/^llama-diffusion-cli/m],
    [/llama-c/, /Wllama/],
  ],
  'unknown architecture': [ggufFile('unheard-of', 'blk.0.attn_q.weight'), 'q8_0', [/"unheard-of"/], [/-m "/, /Wllama/]],
};

function sourceOf(t, files) {
  if (typeof files === 'string') return files;
  const source = join(scratch(t), 'm');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(source, name, '..'), { recursive: true });
    writeFileSync(join(source, name), content instanceof Uint8Array ? content : JSON.stringify(content));
  }
  const [first] = Object.keys(files);
  return /\.(gguf|onnx)$/.test(first) ? join(source, first) : source;
}

for (const [title, [files, preset, has, lacks, format]] of Object.entries(models))
  test(`load lines: ${title}`, async (t) => {
    const { useTexts } = await moduleOf(t, 'demo/result/use-lines.ts');
    const cwd = scratch(t);
    const source = sourceOf(t, files);
    const isFile = /\.(gguf|onnx)$/.exec(source)?.[0] ?? (/^q\d/.test(preset) ? '.gguf' : null);
    const out = isFile ? `out${isFile}` : `./m-${preset}`;
    const flags = ['--preset', preset, '--report', 'report.json', ...(format ? ['--format', format] : [])];
    const { code, stdout, stderr } = await cli(['quantize', source, '-o', out, ...flags], { cwd });
    assert.equal(code, 0, stderr);
    const [, printed = ''] = /^to load it\n((?: {2}.*\n)*)/m.exec(stdout) ?? [];
    const text = printed.replace(/^ {2}/gm, '');
    for (const pattern of has) assert.match(text, pattern);
    for (const pattern of lacks) assert.doesNotMatch(text, pattern);

    const quantizer = await quantizerFor(t);
    const model = await modelFor(t, quantizer, source);
    const done = {
      model,
      modelTitle: 'm',
      choice: { preset },
      hasModules: (await model.siblingFile('modules.json')) !== null,
      report: JSON.parse(readFileSync(join(cwd, 'report.json'), 'utf8')),
      files: { handle: { kind: isFile ? 'file' : 'directory' }, folder: out },
    };
    const shown = useTexts(done).flatMap(({ lines }) => lines);
    assert.deepEqual(shown, text.split('\n').slice(0, -1));
  });
