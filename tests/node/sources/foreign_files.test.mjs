// Files of other kinds: named by what they contain, under any name, with what to do; in library and command line.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cliJson } from '../cli/process.mjs';
import { quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { npzFile } from './npy_file.mjs';

const latin1 = (text) => Buffer.from(text, 'latin1');
const zip = (...names) => npzFile(names.map((name) => ({ name, bytes: Buffer.from('x'.repeat(64)) })));
const rest = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 131 + 7) % 256));
const binary = (...parts) => Buffer.concat([...parts.map((part) => Buffer.from(part)), rest]);

/** [usual name, content, what it is called] */
const kinds = [
  ['model.json', '{"format": "layers-model", "modelTopology": {}, "weightsManifest": []}', /TensorFlow\.js model/],
  ['group1-shard1of1.bin', rest, /weights of a TensorFlow\.js model/, 'keeps its name'],
  ['model.tflite', binary([0x1c, 0, 0, 0], latin1('TFL3')), /LiteRT/],
  ['model.h5', binary(latin1('\x89HDF\r\n\x1a\n')), /HDF5.*Keras/],
  ['model.keras', zip('metadata.json', 'config.json', 'model.weights.h5'), /Keras model/],
  ['model.pt', zip('archive/data.pkl', 'archive/data/0'), /PyTorch checkpoint/],
  ['model.jit', zip('m/data.pkl', 'm/code/__torch__.py', 'm/constants.pkl'), /TorchScript/],
  [
    'old.pth',
    binary([0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19]),
    /PyTorch.*old format/,
  ],
  ['model.pkl', binary([0x80, 4, 0x95]), /pickle/],
  ['model.ftz', binary([0xba, 0x16, 0x4f, 0x2f, 12, 0, 0, 0]), /fastText/],
  ['model.mlmodel', binary([8, 4, 0x12, 0x20, 0x0a, 3], latin1('abc')), /Core ML/],
  ['package.zip', zip('m.mlpackage/Data/com.apple.CoreML/model.mlmodel'), /Core ML/],
  ['saved_model.pb', binary([8, 1, 0x12, 0x7f], latin1('serving_default')), /SavedModel/],
  ['graph.pb', binary([0x0a, 0x7f]), /TensorFlow/, 'keeps its name'],
  ['flax_model.msgpack', binary([0x81]), /Flax/, 'keeps its name'],
  ['ggml-model.bin', binary(latin1('tjgg')), /before GGUF/],
  ['model.xml', '<?xml version="1.0"?><net name="m" version="11"></net>', /OpenVINO/],
  ['model.wasm', binary([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), /WebAssembly/],
  ['model.tar.gz', binary([0x1f, 0x8b, 8]), /archive/],
  [
    'pointer.txt',
    'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 269060552\n',
    /LFS pointer.*269060552 bytes.*git lfs pull/,
  ],
  ['page.html', '\n<!DOCTYPE html><html><title>Sign in</title></html>', /web page/],
  ['error.xml', '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', /error message of a file server/],
  ['zeros.bin', Buffer.alloc(4096), /zeros: its download did not finish/],
  ['noise.bin', binary([0xfe, 0xed, 0xfa, 0xce]), /begins with the bytes fe ed fa ce/],
];

async function refusal(quantizer, source) {
  const error = await quantizer.open(source).then(
    () => assert.fail(`${source} was opened`),
    (reason) => reason,
  );
  assert.doesNotMatch(error.message, /header length|byte 0/, String(source));
  return error;
}

test('each kind is named: by path, as a picked file, and under the name of a weight file', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  for (const [name, content, said, keepsName] of kinds) {
    const names = [name, ...(keepsName ? [] : ['model.safetensors'])];
    for (const each of names) {
      const path = join(folder, each);
      writeFileSync(path, content);
      for (const source of [path, [new File([content], each)], new File([content], each)]) {
        const error = await refusal(quantizer, source);
        assert.match(error.message, said, `${name} as ${each}`);
        assert.equal(error.code, 'format-unknown', `${name} as ${each}: ${error.message}`);
      }
    }
  }
});

test('folders of other kinds and companions without weights', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const folderOf = (name, files) => {
    mkdirSync(join(folder, name));
    for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, name, file), content);
    return join(folder, name);
  };
  const saved = folderOf('saved', {
    'saved_model.pb': kinds.find(([name]) => name === 'saved_model.pb')[1],
    'README.md': 'A saved model.',
  });
  assert.match((await refusal(quantizer, saved)).message, /saved_model\.pb: this is a TensorFlow SavedModel/);
  const web = folderOf('web', { 'model.json': kinds[0][1], 'config.json': '{"model_type": "bert"}' });
  assert.match((await refusal(quantizer, web)).message, /TensorFlow\.js/);
  const config = new File(['{"model_type": "llama"}'], 'config.json');
  for (const source of [config, [config]])
    assert.match((await refusal(quantizer, source)).message, /config\.json of a model.*choose its weights too/);
});

test('for an interrupted download the message says how many bytes are missing', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const { readFileSync } = await import('node:fs');
  const whole = readFileSync(join(tinyLlama, 'model.safetensors'));
  const model = await quantizer.open(tinyLlama);
  await quantizer.quantizeModel(model, 'q8_0', { target: join(folder, 'whole.gguf') });
  await model.close();
  for (const [name, bytes] of [
    ['half.safetensors', whole],
    ['half.gguf', readFileSync(join(folder, 'whole.gguf'))],
  ]) {
    const path = join(folder, name);
    writeFileSync(path, bytes.subarray(0, bytes.length - 1000));
    const error = await refusal(quantizer, path);
    assert.equal(error.code, 'file-truncated');
    const missing = Number(/(\d+) bytes are missing/.exec(error.message)?.[1]);
    assert.ok(missing > 900 && missing <= 1000, error.message);
    const { code, document } = await cliJson(['inspect', path]);
    assert.equal(code, 1);
    assert.match(document.error.message, /bytes are missing/);
  }
});
