// A model behind an address, quantized while it downloads, from a server that drops connections: what has arrived is kept, the
// rest is asked for, nothing is fetched twice, and the bytes are those of the file on disk.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { weights, writeSafetensors } from '../../bench/model_files.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';

/** Six tensors of 4 MiB, so that jobs have several tiles. */
function model(t) {
  const path = join(scratchFolder(t), 'model.safetensors');
  const shape = [1024, 1024];
  const tensors = Array.from({ length: 6 }, (_, at) => ({ name: `model.layers.${at}.mlp.up_proj.weight`, shape }));
  writeSafetensors(path, tensors, weights(shape[0] * shape[1], 5));
  return path;
}

/** Serves the file; every `dropEvery`th answer ends at half. `sent` are the ranges that were sent, `[first, end)`. */
async function serve(t, bytes, dropEvery) {
  const sent = [];
  let dropped = 0;
  let requests = 0;
  const server = createServer((request, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (first === undefined || !request.url.endsWith('/model.safetensors')) return response.writeHead(404).end();
    const [begin, end] = [Number(first), Math.min(Number(last) + 1, bytes.length)];
    const headers = {
      'content-length': end - begin,
      'content-range': `bytes ${first}-${end - 1}/${bytes.length}`,
      etag: '"1"',
    };
    response.writeHead(206, headers);
    const isDropped = ++requests > 2 && end - begin > 1000 && requests % dropEvery === 0;
    const until = isDropped ? begin + Math.floor((end - begin) / 2) : end;
    sent.push([begin, until]);
    if (!isDropped) return response.end(bytes.subarray(begin, end));
    dropped += 1;
    response.write(bytes.subarray(begin, until), () => setTimeout(() => response.destroy(), 20));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = new URL(`http://127.0.0.1:${server.address().port}/model.safetensors`);
  return { url, sent, dropped: () => dropped };
}

for (const threads of [0, 2]) {
  test(`connections that drop, ${threads} workers`, async (t) => {
    const path = model(t);
    const bytes = readFileSync(path);
    const { url, sent, dropped } = await serve(t, bytes, 4);
    const quantizer = await quantizerFor(t, { threads });
    const run = async (source) => {
      const { stream, bytes: written } = memoryStream();
      const opened = await modelFor(t, quantizer, source);
      const report = await quantizer.quantizeModel(opened, 'int8_per_tensor', { target: stream });
      return { written: written(), tensors: report.tensors };
    };
    const [fromDisk, fromServer] = [await run(path), await run(url)];
    assert.deepEqual(fromServer.tensors, fromDisk.tensors);
    assert.ok(Buffer.from(fromServer.written).equals(Buffer.from(fromDisk.written)));
    assert.ok(dropped() >= 8, `${dropped()} answers were cut short`);

    // Per tensor: every byte is read twice, once for its range and once for its codes; the header in between is not read again.
    const headerBytes = 8 + Number(bytes.readBigUInt64LE(0));
    const data = sent.filter(([begin]) => begin >= headerBytes).sort(([a], [b]) => a - b);
    const fetched = data.reduce((sum, [begin, end]) => sum + end - begin, 0);
    assert.equal(fetched, 2 * (bytes.length - headerBytes), 'what has arrived is not asked for again');
  });
}

test("nothing is read ahead beyond the job's ranges", async (t) => {
  const path = model(t);
  const bytes = readFileSync(path);
  const { url, sent } = await serve(t, bytes, Number.POSITIVE_INFINITY);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const opened = await modelFor(t, quantizer, url);
  await quantizer.quantizeModel(opened, 'int4_wo_128', { target: memoryStream().stream });
  const headerBytes = 8 + Number(bytes.readBigUInt64LE(0));
  const data = sent.filter(([begin]) => begin >= headerBytes).sort(([a], [b]) => a - b);
  for (const [at, [begin]] of data.entries()) assert.equal(begin, at === 0 ? headerBytes : data[at - 1][1]);
  assert.equal(data.at(-1)[1], bytes.length);
});
