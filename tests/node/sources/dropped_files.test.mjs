// What the page takes from a dropped folder.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleOf } from '../cli/web_module.mjs';
import { twoLayers } from '../onnx/model.mjs';
import { modelFor, quantizerFor } from '../scratch.mjs';

/** A folder of the page's drop events: texts and bytes are files, objects are folders. */
function entryOf(name, content) {
  if (typeof content === 'string' || content instanceof Uint8Array)
    return { name, isFile: true, file: (resolve) => resolve(new File([content], name)) };
  const entries = Object.entries(content).map(([inner, value]) => entryOf(inner, value));
  const createReader = () => {
    const batches = [entries.slice(0, 1), entries.slice(1), []];
    return { readEntries: (resolve) => resolve(batches.shift() ?? []) };
  };
  return { name, isFile: false, createReader };
}
const dropOf = (content) => ({ items: [{ webkitGetAsEntry: () => entryOf('dropped', content) }], files: [] });

test('a dropped folder gives its files, and ONNX weights in subfolders', async (t) => {
  const { droppedFiles } = await moduleOf(t, 'demo/open/dropped-files.ts');
  const names = async (content) => (await droppedFiles(dropOf(content))).files.map(({ name }) => name);
  const plain = { 'model.safetensors': 'x', 'config.json': '{}', original: { 'consolidated.pth': 'x' } };
  assert.deepEqual(await names(plain), ['model.safetensors', 'config.json']);
  const encoder = { ...plain, '1_Pooling': { 'config.json': '{}' } };
  assert.deepEqual(await names(encoder), ['model.safetensors', 'config.json', '1_Pooling/config.json']);
  const { bytes, data } = twoLayers({ location: 'weights/deep/w.bin' });
  const onnx = { 'model.onnx': bytes, weights: { deep: { 'w.bin': data } } };
  const { files } = await droppedFiles(dropOf(onnx));
  assert.deepEqual(
    files.map(({ name, size }) => [name, size]),
    [
      ['model.onnx', bytes.length],
      ['weights/deep/w.bin', data.length],
    ],
  );
  const model = await modelFor(t, await quantizerFor(t), files);
  assert.equal(model.files[1].bytes, data.length);
});
