// Ranges of blobs: the right bytes in any order, one stream for ranges that follow each other, and what a blob says when it
// cannot be read.
import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import { blobReader } from '../../../dist/io/blob_reader.js';
import { scratchFolder } from '../scratch.mjs';

const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => (index * 31) % 251);

/** A blob that counts how it is read; `isByteStream`: false as in hosts without BYOB readers. */
function countedBlob(isByteStream = true) {
  const blob = new Blob([bytes]);
  const counts = { slices: 0, streams: 0 };
  const count = (part) => ({
    size: part.size,
    arrayBuffer: () => {
      counts.slices += 1;
      return part.arrayBuffer();
    },
    stream: () => {
      counts.streams += 1;
      return isByteStream ? part.stream() : new ReadableStream();
    },
  });
  return { counts, blob: { size: blob.size, slice: (begin, end) => count(blob.slice(begin, end)) } };
}

const same = async (read, offset, length) =>
  assert.deepEqual(await read(offset, length), bytes.slice(offset, offset + length), `${offset} + ${length}`);

test('ranges that follow each other are one stream from the second on, asked for at once or in turn', async () => {
  const { blob, counts } = countedBlob();
  const reader = blobReader(blob);
  await same(reader.read, 0, 1000);
  await same(reader.read, 1000, 70_000);
  await Promise.all([
    same(reader.read, 71_000, 1),
    same(reader.read, 71_001, 99_999),
    same(reader.read, 171_000, bytes.length - 171_000),
  ]);
  assert.deepEqual(counts, { slices: 1, streams: 1 });
  reader.close();
});

test('a jump is a slice of its own, and ends the stream', async () => {
  const { blob, counts } = countedBlob();
  const reader = blobReader(blob);
  for (const offset of [200_000, 5, 100_000, 0]) await same(reader.read, offset, 4096);
  assert.deepEqual(counts, { slices: 4, streams: 0 });
  await same(reader.read, 4096, 4096);
  const left = reader.read(8192, 100_000);
  await same(reader.read, 250_000, 10); // gives up the stream that `left` waits for
  assert.ok((await left).byteLength <= 100_000);
  await same(reader.read, 250_010, 20);
  assert.deepEqual(counts, { slices: 5, streams: 2 });
  reader.close();
});

test('without byte streams every range is a slice', async () => {
  const { blob, counts } = countedBlob(false);
  const reader = blobReader(blob);
  for (let offset = 0; offset < 50_000; offset += 10_000) await same(reader.read, offset, 10_000);
  assert.deepEqual(counts, { slices: 5, streams: 4 });
});

test('a range beyond the end is short, and a failing blob fails each read once', async () => {
  const short = blobReader(new Blob([bytes]));
  await same(short.read, 0, 100);
  assert.equal((await short.read(100, bytes.length)).byteLength, bytes.length - 100);

  const broken = {
    size: 10,
    slice: (begin) =>
      begin === 0
        ? new Blob([bytes.slice(0, 5)])
        : { stream: () => new ReadableStream({ type: 'bytes', pull: () => Promise.reject(new Error('gone')) }) },
  };
  const reader = blobReader(broken);
  await same(reader.read, 0, 5);
  const failures = await Promise.allSettled([reader.read(5, 2), reader.read(7, 3)]);
  assert.deepEqual(
    failures.map(({ reason }) => reason?.message),
    ['gone', 'gone'],
  );
  reader.close();
});

test('a file that changed after it was chosen is named, with what to do', async (t) => {
  const path = join(scratchFolder(t), 'model.safetensors');
  copyFileSync('tests/files/tiny-llama/model.safetensors', path);
  const blob = await openAsBlob(path);
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await quantizer.open(new File([blob], 'model.safetensors'));
  appendFileSync(path, 'more');
  const target = new WritableStream();
  await assert.rejects(quantizer.quantizeModel(model, 'int8', { target, format: 'fake-quantized' }), {
    code: 'read-failed',
    message: /^model\.safetensors: cannot be read at byte \d+: it has changed, .*; choose it again/,
  });
  await quantizer.close();
});
