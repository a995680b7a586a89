// What the page takes from a dropped folder.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { moduleOf } from '../cli/web_module.mjs';
import { twoLayers } from '../onnx/model.mjs';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

/** A folder of the page's drop events: texts and bytes are files, objects are folders. */
function entryOf(name, content) {
  if (typeof content === 'string' || content instanceof Uint8Array)
    return { name, isFile: true, file: (resolve) => resolve(new File([content], name)) };
  const entries = Object.entries(content).map(([inner, value]) => entryOf(inner, value));
  const createReader = () => {
    const batches = [entries.slice(0, 1), entries.slice(1), []];
    return { readEntries: (resolve) => resolve(batches.shift() ?? []) };
  };
  return { name, isFile: false, isDirectory: true, createReader };
}
const dropOf = (content) => ({ items: [{ webkitGetAsEntry: () => entryOf('dropped', content) }], files: [] });

test('a dropped folder gives all of its files with their paths, and the library takes what belongs to the model', async (t) => {
  const { droppedFiles } = await moduleOf(t, 'demo/open/dropped-files.ts');
  const { files: list, folder } = await droppedFiles(
    dropOf({
      'model.safetensors': new Uint8Array(readFileSync(join(tinyLlama, 'model.safetensors'))),
      'config.json': '{}',
      original: { 'consolidated.pth': 'x' },
      '1_Pooling': { 'config.json': '{}' },
      '.git': { HEAD: 'x' },
      node_modules: { deep: { 'x.js': 'x' } },
    }),
  );
  assert.equal(folder, 'dropped');
  assert.deepEqual(
    list.map(({ name }) => name),
    ['model.safetensors', 'config.json', 'original/consolidated.pth', '1_Pooling/config.json'].map(
      (name) => `dropped/${name}`,
    ),
  );
  const model = await modelFor(t, await quantizerFor(t), list);
  assert.deepEqual(
    model.files.map(({ name }) => name),
    ['model.safetensors'],
  );
  assert.deepEqual(model.config, {});
});

test('a dropped folder gives ONNX weights in subfolders', async (t) => {
  const { droppedFiles } = await moduleOf(t, 'demo/open/dropped-files.ts');
  const { bytes, data } = twoLayers({ location: 'weights/deep/w.bin' });
  const { files } = await droppedFiles(dropOf({ 'model.onnx': bytes, weights: { deep: { 'w.bin': data } } }));
  const model = await modelFor(t, await quantizerFor(t), files);
  assert.equal(model.files[1].bytes, data.length);
});

test('a dropped folder of folders is refused with the folders that hold weights', async (t) => {
  const { droppedFiles } = await moduleOf(t, 'demo/open/dropped-files.ts');
  const part = { 'diffusion_pytorch_model.safetensors': 'x', 'config.json': '{}' };
  const { files } = await droppedFiles(
    dropOf({ 'model_index.json': '{}', unet: part, vae: part, scheduler: { 'a.json': '{}' } }),
  );
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantizer.open(files), {
    code: 'source-invalid',
    message: /^dropped: has no weights itself; models are in its folders unet \(diffusion.*\), vae \(/,
  });
});
