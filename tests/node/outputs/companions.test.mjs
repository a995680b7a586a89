// What becomes of the files next to the weights: each is carried along, or named in a note, or of no use by a row of carried_files.ts.
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const weights = readFileSync(join(tinyLlama, 'model.safetensors'));
const config = readFileSync(join(tinyLlama, 'config.json'));

/** A model's folder with other files: {path: content}. */
function folderWith(t, files) {
  const folder = join(scratchFolder(t), 'source');
  const all = { 'model.safetensors': weights, 'config.json': config, ...files };
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

const pathsIn = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();

/** Files of an int8 output of a source, and the paths that its note names. */
async function written(t, quantizer, source) {
  const model = await modelFor(t, quantizer, source);
  const out = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(model, 'int8', { target: out });
  const notes = report.diagnostics.filter(({ code }) => code === 'files-left');
  assert.ok(notes.length <= 1);
  const named = notes.flatMap(({ message }) => message.split(': ')[1].split(', '));
  return { out, carried: pathsIn(out).filter((path) => !/^(model\.safetensors|config\.json)$/.test(path)), named };
}

const tables = {
  carried: [
    'chat_template.jinja',
    'chat_template.json',
    'additional_chat_templates/tool_use.jinja',
    'tokenizer.json',
    'tokenizer_config.json',
    'tokenizer.model',
    'tokenizer.model.v3',
    'tekken.json',
    'params.json',
    'processor_config.json',
    'video_preprocessor_config.json',
    'generation_config.json',
    'mel_filters.npz',
    'speaker_embeddings/en/speaker_0.npy',
    'speaker_embeddings/prompt.pt',
    'language_model/5gram.bin',
    'language_model/attrs.json',
    'modeling_own.py',
    'parts/attention/kernel.py',
    'LICENSE',
    'recipe.yaml',
  ],
  named: [
    'adapter_model.safetensors',
    'medusa_head.pt',
    'notes.docx',
    '.env',
    '.aws/credentials',
    'sub/unknown.xyz',
    'model.fp16.safetensors',
    'model-00001-of-00002.fp16.safetensors',
    'weights.gguf',
  ],
  useless: [
    '.gitattributes',
    '.git/config',
    '.cache/huggingface/x.lock',
    '.DS_Store',
    'code/__pycache__/x.pyc',
    'pytorch_model.bin',
    'pytorch_model-00001-of-00002.bin',
    'pytorch_model.bin.index.json',
    'model.safetensors.index.fp16.json',
    'tf_model.h5',
    'flax_model.msgpack',
    'optimizer.pt',
    'banner.png',
    'quantization_config.json',
  ],
};

test('each file of a table is carried along, named, or of no use, as the table says', async (t) => {
  const quantizer = await quantizerFor(t);
  const all = Object.values(tables).flat();
  const contentOf = (path) => JSON.stringify({ path });
  const source = folderWith(t, Object.fromEntries(all.map((path) => [path, contentOf(path)])));
  const { out, carried, named } = await written(t, quantizer, source);
  assert.deepEqual(carried, [...tables.carried].sort());
  for (const path of carried) assert.equal(readFileSync(join(out, path), 'utf8'), contentOf(path));
  const shown = new Set(tables.named.map((path) => (path.startsWith('.aws/') ? '.aws/' : path)));
  assert.deepEqual(named.sort(), [...shown].sort());
});

test('a folder that holds weights is a model of its own, and is named whole', async (t) => {
  const quantizer = await quantizerFor(t);
  const files = { 'onnx/model.onnx': 'x', 'onnx/config.json': '{}', 'original/deep/consolidated.00.pth': 'x' };
  const { carried, named } = await written(t, quantizer, folderWith(t, { ...files, 'text/vocab.txt': 'x' }));
  assert.deepEqual(carried, ['text/vocab.txt']);
  assert.deepEqual(named, ['onnx/', 'original/']);
});

test('modules of modules.json are carried whole, and only those inside the folder', async (t) => {
  const quantizer = await quantizerFor(t);
  const paths = ['', '1_Pooling', '2_Dense', 'own module', '../outside', '/etc', 'a/../../outside', 'C:\\x'];
  const modules = paths.map((path, idx) => ({ idx, name: `${idx}`, path, type: 'sentence_transformers.models.X' }));
  const inside = ['1_Pooling/config.json', '2_Dense/config.json', '2_Dense/model.safetensors', 'own module/x/w.bin'];
  const files = Object.fromEntries(inside.map((path) => [path, '{}']));
  const source = folderWith(t, { ...files, '3_Dense/model.safetensors': 'x', 'modules.json': JSON.stringify(modules) });
  mkdirSync(join(source, '../outside'));
  writeFileSync(join(source, '../outside/config.json'), 'secret');
  const { out, carried, named } = await written(t, quantizer, source);
  assert.deepEqual(carried, [...inside, 'modules.json'].sort());
  assert.deepEqual(named, ['3_Dense/']);
  assert.ok(!existsSync(join(out, '../outside/config.json')));
});

test('links to folders are not entered, and links out of a subfolder are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = folderWith(t, { 'sub/a.json': '{}' });
  writeFileSync(join(source, '../secret.json'), 'secret');
  symlinkSync('../../secret.json', join(source, 'sub/b.json'));
  symlinkSync('.', join(source, 'loop'));
  const { carried, named } = await written(t, quantizer, source);
  assert.deepEqual(carried, ['sub/a.json']);
  assert.deepEqual(named, ['loop', 'sub/b.json']);
});

test('random files: each is carried, named or of no use, from a path as from the files of a page', async (t) => {
  const quantizer = await quantizerFor(t);
  let state = 57;
  const pick = (list) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return list[Math.floor((state / 2 ** 32) * list.length)];
  };
  const folders = ['', '', '', 'sub/', 'sub/deep/', 'language_model/', '.git/', '.hidden/', 'weights/', '1_Pooling/'];
  const stems = ['model', 'tokenizer', 'chat_template', 'data', 'README', '.x', 'weird name', 'mödel', 'optimizer'];
  const endings = ['', '.json', '.txt', '.py', '.bin', '.pt', '.png', '.wav', '.onnx', '.jinja', '.npy', '.xyz', '.v3'];
  for (let round = 0; round < 12; ++round) {
    const paths = new Set();
    for (let i = 0; i < 25; ++i) paths.add(`${pick(folders)}${pick(stems)}${round}${pick(endings)}`);
    const source = folderWith(t, Object.fromEntries([...paths].map((path) => [path, path])));
    const { carried, named } = await written(t, quantizer, source);
    const useless = /^\.git\/|^[^/]*\.png$/;
    for (const path of paths) {
      const isNamed = named.some((one) => one === path || (one.endsWith('/') && path.startsWith(one)));
      const ways = [carried.includes(path), isNamed, useless.test(path)].filter(Boolean).length;
      assert.equal(ways, 1, `round ${round}: ${path}; carried ${carried}; named ${named}`);
    }
    const list = pathsIn(source).map((path) => new File([readFileSync(join(source, path))], join('source', path)));
    const ofPage = await written(t, quantizer, list);
    assert.deepEqual([ofPage.carried, ofPage.named.sort()], [carried, named.sort()]);
  }
});

/** Mistral's own layout, whose weights have other names. */
const mistral = { 'params.json': '{"dim": 64}', 'tekken.json': '{}' };

test('the layout of Mistral is refused where a config.json would be needed, and kept as fake-quantized', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const name of ['consolidated.safetensors', 'consolidated.00.safetensors']) {
    const source = folderWith(t, { ...mistral, [name]: weights });
    rmSync(join(source, 'model.safetensors'));
    rmSync(join(source, 'config.json'));
    const model = await modelFor(t, quantizer, source);
    const target = join(scratchFolder(t), 'out');
    const refusal = { code: 'format-unsupported', message: /^params\.json: .*Mistral.*layout of transformers/ };
    for (const [preset, format] of [['int8'], ['fp8'], ['int4_wo_32', 'quark'], ['uint4_wo_128', 'awq']]) {
      await assert.rejects(() => quantizer.plan(model, preset, { format }), refusal);
      await assert.rejects(quantizer.quantizeModel(model, preset, { target, format }), refusal);
    }
    await quantizer.quantizeModel(model, 'int8', { target, format: 'fake-quantized' });
    assert.deepEqual(pathsIn(target), [name, 'params.json', 'tekken.json']);
  }
});

test('next to the layout of transformers, that of Mistral is named', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = folderWith(t, { ...mistral, 'consolidated.safetensors': weights });
  const { carried, named } = await written(t, quantizer, source);
  assert.deepEqual([carried, named], [['params.json', 'tekken.json'], ['consolidated.safetensors']]);
});

test('a folder without config.json gets one, and a note that it names no class', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = folderWith(t, {});
  rmSync(join(source, 'config.json'));
  const model = await modelFor(t, quantizer, source);
  const { diagnostics } = await quantizer.quantizeModel(model, 'int8', { target: join(scratchFolder(t), 'out') });
  assert.ok(diagnostics.some(({ code, where }) => code === 'config-not-written' && where === 'config.json'));
});

test('folders of folders are refused with the folders that hold weights', async (t) => {
  const quantizer = await quantizerFor(t);
  const layouts = {
    'unet (diffusion_pytorch_model.safetensors), vae (': {
      'model_index.json': '{}',
      'unet/diffusion_pytorch_model.safetensors': weights,
      'vae/diffusion_pytorch_model.safetensors': weights,
      'scheduler/scheduler_config.json': '{}',
    },
    '0_Transformer (model.safetensors)': { 'modules.json': '[]', '0_Transformer/model.safetensors': weights },
    'a/b (model.safetensors)': { 'a/b/model.safetensors': weights },
  };
  for (const [wanted, files] of Object.entries(layouts)) {
    const source = folderWith(t, files);
    rmSync(join(source, 'model.safetensors'));
    await assert.rejects(quantizer.open(source), (error) => {
      assert.equal(error.code, 'source-invalid');
      assert.ok(error.message.includes(`has no weights itself; models are in its folders ${wanted}`), error.message);
      return true;
    });
  }
});

test('a copy of the sample loses nothing and has nothing to say', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = join(scratchFolder(t), 'source');
  cpSync(tinyLlama, source, { recursive: true, filter: (path) => !relative(tinyLlama, path).startsWith('bf16') });
  const { carried, named } = await written(t, quantizer, source);
  assert.deepEqual(named, []);
  assert.ok(carried.includes('tokenizer.json'));
});
