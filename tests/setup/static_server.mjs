// A static file server for pages of tests, which may post what they found. Local only.
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';

const mediaTypes = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.wasm': 'application/wasm',
};

/** `bytes=a-b`, `bytes=a-` or `bytes=-n` as [first, last], both inside; null when there is no or no usable range. */
function parseRange(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return null;
  const first = match[1] === '' ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const last = match[1] === '' || match[2] === '' ? size - 1 : Math.min(size - 1, Number(match[2]));
  return first <= last ? [first, last] : null;
}

async function answer(folder, request, response) {
  const refuse = (status, headers = {}) => response.writeHead(status, headers).end();
  if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(405, { allow: 'GET, HEAD' });
  let path;
  try {
    path = normalize(join(folder, decodeURIComponent(new URL(request.url, 'http://local').pathname)));
  } catch {
    return refuse(400);
  }
  if (path !== folder && !path.startsWith(folder + sep)) return refuse(403);
  let info = await stat(path).catch(() => null);
  if (info?.isDirectory()) {
    path = join(path, 'index.html');
    info = await stat(path).catch(() => null);
  }
  if (!info?.isFile()) return refuse(404);

  const headers = {
    'content-type': mediaTypes[extname(path)] ?? 'application/octet-stream',
    'accept-ranges': 'bytes',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
  };
  const range = parseRange(request.headers.range, info.size);
  if (request.headers.range && !range) return refuse(416, { 'content-range': `bytes */${info.size}` });
  const [start, end] = range ?? [0, info.size - 1];
  headers['content-length'] = info.size === 0 ? 0 : end - start + 1;
  if (range) headers['content-range'] = `bytes ${start}-${end}/${info.size}`;
  response.writeHead(range ? 206 : 200, headers);
  if (request.method === 'HEAD' || info.size === 0) return response.end();
  createReadStream(path, { start, end })
    .on('error', () => response.destroy())
    .pipe(response);
}

/** Text of a posted body. */
async function posted(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

/**
 * Serves `folder` on a free port of 127.0.0.1. `receive` gets the text of what pages post. Resolves to `{ url, close() }`.
 */
export async function serve(folder, { receive = null } = {}) {
  const base = normalize(folder).replace(/[/\\]$/, '');
  const take = async (request, response) => {
    receive(await posted(request));
    response.writeHead(204).end();
  };
  const server = createServer((request, response) => {
    const answered = receive && request.method === 'POST' ? take(request, response) : answer(base, request, response);
    answered.catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}
