// Servers that answer with other bytes than they were asked for, or with those of another file: an error that says so, or the right
// bytes, never a mixture. Bodies without end are given up.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { createGzip } from 'node:zlib';
import { weights, writeSafetensors } from '../../bench/model_files.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';

const shape = [512, 512];
const tensors = Array.from({ length: 6 }, (_, at) => ({ name: `model.layers.${at}.mlp.up_proj.weight`, shape }));

function fileBytes(t, seed) {
  const path = join(scratchFolder(t), 'model.safetensors');
  writeSafetensors(path, tensors, weights(shape[0] * shape[1], seed));
  return readFileSync(path);
}

const oldDate = 'Mon, 02 Nov 2026 10:00:00 GMT';
const newDate = 'Tue, 03 Nov 2026 10:00:00 GMT';

/** Serves `file`; `answer(request number, headers, range, request)` changes headers, or returns {status, headers, body}. */
async function serve(t, file, answer) {
  let requests = 0;
  const server = createServer((request, response) => {
    if (!decodeURIComponent(request.url).endsWith('/model.safetensors')) return response.writeHead(404).end();
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [0, 0, file.length - 1];
    const range = { first: Number(first), end: Math.min(Number(last) + 1, file.length) };
    const headers = { 'content-range': `bytes ${range.first}-${range.end - 1}/${file.length}` };
    const own = answer(requests++, headers, range, request) ?? {};
    response.writeHead(own.status ?? 206, own.headers ?? headers);
    if (typeof own.body === 'function') return own.body(response);
    response.end(own.body ?? file.subarray(range.first, range.end));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return new URL(`http://127.0.0.1:${server.address().port}/model.safetensors`);
}

/** Another file is sent from the fourth request on; `tell` gives the headers that tell so, or do not. */
const changesTo =
  (other, tell) =>
  (number, headers, { first, end }) => {
    Object.assign(headers, tell(number >= 3));
    return number >= 3 ? { headers, body: other.subarray(first, end) } : {};
  };

const changed = /the file changed during the run/;
const tricks = {
  'another Last-Modified, no ETag': [
    (other) => changesTo(other, (isNew) => ({ 'last-modified': isNew ? newDate : oldDate })),
    changed,
  ],
  'another ETag': [(other) => changesTo(other, (isNew) => ({ etag: isNew ? '"b"' : '"a"' })), changed],
  'an ETag at first, none later': [(other) => changesTo(other, (isNew) => (isNew ? {} : { etag: '"a"' })), changed],
  'another size': [
    (other) =>
      (number, headers, { first, end }) => {
        if (number < 3) return {};
        headers['content-range'] = `bytes ${first}-${end - 1}/${other.length + 1}`;
        return { headers, body: other.subarray(first, end) };
      },
    changed,
  ],
  'the start of the file, regardless of the request': [
    (other) =>
      (number, headers, { first, end }) => {
        if (number < 3) return {};
        headers['content-range'] = `bytes 0-${end - first - 1}/${other.length}`;
        return { headers, body: other.subarray(0, end - first) };
      },
    /the server sent bytes 0-\d+\/\d+ for bytes \d+-\d+/,
  ],
  'no Content-Range': [
    (other) =>
      (number, _, { first, end }) =>
        number < 3 ? {} : { headers: {}, body: other.subarray(first, end) },
    /the server sent no Content-Range for bytes/,
  ],
  'the whole new file, because If-Range does not hold': [
    (other) => (number, headers, _, request) => {
      headers.etag = '"a"';
      if (number < 3) return {};
      assert.equal(request.headers['if-range'], '"a"');
      return { status: 200, headers: { etag: '"b"' }, body: other };
    },
    /status 200 OK instead of 206/,
  ],
};

for (const threads of [0, 2])
  for (const [name, [trick, message]] of Object.entries(tricks))
    test(`${name}, ${threads} workers`, async (t) => {
      const url = await serve(t, fileBytes(t, 5), trick(fileBytes(t, 6)));
      const quantizer = await quantizerFor(t, { threads });
      const opened = await modelFor(t, quantizer, url);
      await assert.rejects(
        quantizer.quantizeModel(opened, 'int8_per_tensor', { target: memoryStream().stream }),
        (error) => error.code === 'read-failed' && message.test(error.message),
      );
    });

test('short parts, weak tags and a hidden size do not count as a change', async (t) => {
  const file = fileBytes(t, 5);
  const quantizer = await quantizerFor(t);
  const run = async (source) => {
    const { stream, bytes } = memoryStream();
    await quantizer.quantizeModel(await modelFor(t, quantizer, source), 'int8_per_tensor', { target: stream });
    return Buffer.from(bytes());
  };
  const url = await serve(t, file, (number, headers, { first, end }) => {
    headers.etag = number % 2 === 0 ? '"a"' : 'W/"a"';
    if (number === 0 || end - first < 1000) return {};
    const half = first + ((end - first) >> 1);
    headers['content-range'] = `bytes ${first}-${half - 1}/${number % 3 === 0 ? '*' : file.length}`;
    return { headers, body: file.subarray(first, half) };
  });
  assert.ok((await run(url)).equals(await run(file)));
});

test('an endless body is abandoned', async (t) => {
  const piece = Buffer.alloc(1 << 20);
  const url = await serve(t, fileBytes(t, 5), () => ({
    status: 200,
    headers: {},
    body: (response) => {
      const more = () => {
        while (!response.destroyed && response.write(piece));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    },
  }));
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantizer.open(url), { code: 'file-too-large', message: /without a Content-Length/ });
});

test('a compressed body counts with its unpacked size', async (t) => {
  const piece = Buffer.alloc(2 ** 20, 0x20);
  const packed = await new Promise((resolve) => {
    const zip = createGzip();
    const pieces = [];
    zip.on('data', (data) => pieces.push(data)).on('end', () => resolve(Buffer.concat(pieces)));
    for (let i = 0; i < 300; ++i) zip.write(piece);
    zip.end();
  });
  const server = createServer((request, response) => {
    if (request.url === '/model.safetensors') {
      const file = fileBytes(t, 1);
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [0, 0, file.length - 1];
      const range = `bytes ${first}-${Math.min(Number(last), file.length - 1)}/${file.length}`;
      return response.writeHead(206, { 'content-range': range }).end(file.subarray(Number(first), Number(last) + 1));
    }
    if (request.url !== '/config.json') return response.writeHead(404).end();
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length }).end(packed);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantizer.open(new URL(`http://127.0.0.1:${server.address().port}/model.safetensors`)), {
    code: 'file-too-large',
    message: /config\.json: 2684\d+ bytes unpacked/,
  });
});

test('a name in a URL is a file name, not a path', async (t) => {
  const url = await serve(t, fileBytes(t, 1), () => ({}));
  url.pathname = '/..%2f..%2fx%2fmodel.safetensors';
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, url);
  assert.equal(model.files[0].name, 'model.safetensors');
});
