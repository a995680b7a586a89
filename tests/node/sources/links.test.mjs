// Links in a model's folder: caches are made of them, but they must not carry files from elsewhere into an output.
import assert from 'node:assert/strict';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { twoLayers } from '../onnx/model.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const filesOfTinyLlama = readdirSync(tinyLlama, { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => entry.name);
const secret = JSON.stringify({ token: 'of someone' });

async function quantized(t, source) {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, source);
  const out = join(scratchFolder(t), 'out');
  await quantizer.quantizeModel(model, 'int8', { target: out });
  return { model, out };
}

/** A copy of tiny-llama, and a file outside it. */
function strangersFolder(t) {
  const root = scratchFolder(t);
  const folder = join(root, 'model');
  cpSync(tinyLlama, folder, { recursive: true });
  writeFileSync(join(root, 'secret.json'), secret);
  return { root, folder };
}

test('a Hugging Face cache, which links to blobs, is read with its companions', async (t) => {
  const root = scratchFolder(t);
  const [snapshot, blobs] = [join(root, 'models--org--m/snapshots/0a1b'), join(root, 'models--org--m/blobs')];
  mkdirSync(snapshot, { recursive: true });
  mkdirSync(blobs);
  for (const [at, name] of filesOfTinyLlama.entries()) {
    copyFileSync(join(tinyLlama, name), join(blobs, `blob${at}`));
    symlinkSync(relative(snapshot, join(blobs, `blob${at}`)), join(snapshot, name));
  }
  const { model, out } = await quantized(t, snapshot);
  assert.deepEqual(model.diagnostics, []);
  assert.deepEqual(readFileSync(join(out, 'tokenizer.json')), readFileSync(join(tinyLlama, 'tokenizer.json')));
  assert.ok(existsSync(join(out, 'config.json')));
});

test('a folder of links to the files of another folder is read with its companions', async (t) => {
  const folder = scratchFolder(t);
  for (const name of filesOfTinyLlama) symlinkSync(join(tinyLlama, name), join(folder, name));
  const { model, out } = await quantized(t, folder);
  assert.deepEqual(model.diagnostics, []);
  assert.ok(existsSync(join(out, 'tokenizer.json')));
});

for (const name of ['tokenizer.json', 'README.md', 'config.json']) {
  test(`${name} that is a link out of the folder is left out and named`, async (t) => {
    const { root, folder } = strangersFolder(t);
    const path = join(folder, name);
    if (existsSync(path)) renameSync(path, join(root, 'moved'));
    symlinkSync('../secret.json', path);
    const { model, out } = await quantized(t, folder);
    const [{ code, where, message }] = model.diagnostics;
    assert.deepEqual([code, where], ['link-outside', name]);
    assert.match(message, /secret\.json/);
    for (const written of readdirSync(out))
      assert.doesNotMatch(readFileSync(join(out, written), 'latin1'), /of someone/);
  });
}

test('a link named like a weight file does not open the folder that it leads to', async (t) => {
  const { folder } = strangersFolder(t);
  symlinkSync('../secret.json', join(folder, 'extra.gguf'));
  symlinkSync('../secret.json', join(folder, 'NOTICE.md'));
  const { model } = await quantized(t, join(folder, 'model.safetensors'));
  assert.equal(model.diagnostics[0].code, 'link-outside');
});

test('a subfolder that is a link out of the folder is not entered', async (t) => {
  const { root, folder } = strangersFolder(t);
  mkdirSync(join(root, 'pooling'));
  writeFileSync(join(root, 'pooling/config.json'), secret);
  symlinkSync('../pooling', join(folder, '1_Pooling'));
  const { model } = await quantized(t, folder);
  assert.deepEqual(
    model.diagnostics.map(({ code, where }) => [code, where]),
    [['link-outside', '1_Pooling']],
  );
});

test('external ONNX data that are a link out of the folder are refused', async (t) => {
  const root = scratchFolder(t);
  const { bytes, data } = twoLayers({ location: 'weights.bin' });
  mkdirSync(join(root, 'model'));
  writeFileSync(join(root, 'model/model.onnx'), bytes);
  writeFileSync(join(root, 'weights.bin'), data);
  symlinkSync('../weights.bin', join(root, 'model/weights.bin'));
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantizer.open(join(root, 'model/model.onnx')), (error) => {
    assert.equal(error.code, 'source-invalid');
    assert.match(error.message, /weights\.bin.* is a link to .*outside the model's folder/);
    return true;
  });
});
