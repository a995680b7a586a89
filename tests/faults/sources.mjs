// Inputs that fail: reads that throw or come short, files that shrink, grow or vanish while they are read, servers that
// drop connections, stall, change the file or refuse. The error says what happened, nothing is written; what a retry can
// mend is mended, with the same bytes.
import { readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { contentsOf, random, writeModel } from './model.mjs';

/** Outcome of a run: `{ digest }` or `{ error }`. */
async function run(quantizer, source, target, during = () => {}) {
  try {
    const model = await quantizer.open(source);
    try {
      let isFirst = true;
      await quantizer.quantizeModel(model, 'int4_wo_128', {
        target,
        onProgress: () => {
          if (isFirst) during();
          isFirst = false;
        },
      });
    } finally {
      await model.close();
    }
    return { digest: contentsOf(target, 'model.safetensors'), error: null };
  } catch (error) {
    return { digest: null, error };
  }
}

/** A server of one file whose `misbehave(request number, response, bytes)` may answer in its own way. */
async function serve(bytes, misbehave) {
  let requests = 0;
  const server = createServer((request, response) => {
    if (!request.url.endsWith('/model.safetensors')) return response.writeHead(404).end();
    const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const [first, last] = match
      ? [Number(match[1]), Math.min(Number(match[2]), bytes.length - 1)]
      : [0, bytes.length - 1];
    const part = bytes.subarray(first, last + 1);
    const headers = {
      'content-length': part.length,
      'content-range': `bytes ${first}-${last}/${bytes.length}`,
      etag: '"a"',
    };
    if (misbehave(requests++, response, part, headers)) return;
    response.writeHead(206, headers).end(part);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { url: new URL(`http://127.0.0.1:${server.address().port}/model.safetensors`), close };
}

const dropHalfway = (response, part, headers) => {
  response.writeHead(206, headers);
  response.write(part.subarray(0, part.length >> 1), () => response.destroy());
  return true;
};

export async function sources(folder, count, fault, createQuantizer) {
  const model = writeModel(join(folder, 'sources'), 3);
  const file = join(model, 'model.safetensors');
  const bytes = readFileSync(file);
  const next = random(count + 1);
  let number = 0;
  const out = () => join(folder, `out-${number++}`);
  const failed = (name, { error }, code, target) =>
    fault(
      error?.code === code && contentsOf(target) === null,
      `${name}: ${error ? `${error.code} ${error.message}` : 'no error'}`,
    );

  for (const threads of [0, 2]) {
    const quantizer = await createQuantizer({ threads });
    try {
      const whole = await run(quantizer, file, out());
      const same = (name, result) =>
        fault(result.digest === whole.digest, `${name}, ${threads} workers: ${result.error?.message ?? 'other bytes'}`);

      for (let at = 0; at < count; ++at) {
        let reads = 0;
        const limit = 1 + Math.floor(next() * 24);
        const isShort = at % 2 === 0;
        const source = {
          size: bytes.length,
          name: 'model.safetensors',
          async read(offset, length) {
            if (++reads < limit) return bytes.subarray(offset, offset + length);
            if (!isShort) throw new Error('the disk is on fire');
            return bytes.subarray(offset, offset + length - 1);
          },
        };
        const target = out();
        const result = await run(quantizer, source, target);
        if (reads < limit) same('a source that was read to its end before it failed', result);
        else failed(`read ${limit} fails`, result, isShort ? 'file-truncated' : 'read-failed', target);
      }

      const changes = {
        'shrinks while it is read': [() => truncateSync(file, bytes.length >> 1), ['file-truncated', 'read-failed']],
        'changes while it is read': [
          () => writeFileSync(file, Buffer.concat([bytes, Buffer.from(' ')])),
          ['read-failed'],
        ],
        'gets another time': [() => utimesSync(file, 1, 1), ['read-failed']],
        'is removed': [() => rmSync(file), ['read-failed']],
      };
      for (const [name, [change, codes]] of Object.entries(changes)) {
        writeFileSync(file, bytes);
        const target = out();
        const { error } = await run(quantizer, file, target, change);
        fault(
          codes.includes(error?.code) && contentsOf(target) === null,
          `a file that ${name}: ${error?.message ?? 'no error'}`,
        );
      }
      writeFileSync(file, bytes);

      const servers = {
        'drops every third answer halfway': (request, ...rest) => request % 3 === 1 && dropHalfway(...rest),
        'is busy now and then': (request, response) => request % 4 === 2 && response.writeHead(503).end(),
      };
      for (const [name, misbehave] of Object.entries(servers)) {
        const server = await serve(bytes, misbehave);
        same(`a server that ${name}`, await run(quantizer, server.url, out()));
        await server.close();
      }
      const refusals = {
        'changes the file': (request, response, part, headers) =>
          request > 2 && response.writeHead(206, { ...headers, etag: '"b"' }).end(part),
        'forbids further reading': (request, response) => request > 2 && response.writeHead(403).end(),
        'is down for good': (request, response) => request > 2 && response.destroy(),
      };
      for (const [name, misbehave] of Object.entries(refusals)) {
        const server = await serve(bytes, misbehave);
        const target = out();
        failed(`a server that ${name}`, await run(quantizer, server.url, target), 'read-failed', target);
        await server.close();
      }
    } finally {
      await quantizer[Symbol.asyncDispose]();
    }
  }
  return `${count} failing reads with 0 and with 2 workers, changing files, unreliable servers`;
}
