// Size budget: dist/wasmquant.wasm as it is, and the gzip size of the library as a page bundles it (minified, one file),
// against "budget" in package.json. Prints raw, gzip and brotli sizes in bytes; exit code 1 when a budget is passed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { root } from './setup/command.mjs';

const { budget } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const dist = join(root, 'dist');

function sizes(bytes) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return {
    raw: bytes.length,
    gzip: gzipSync(bytes, { level: 9 }).length,
    brotli: brotliCompressSync(bytes, { params }).length,
  };
}

/** The browser entry and the worker as a bundler delivers them: the entry and what it imports, without what is loaded when used. */
async function bundled(entry) {
  const bundle = await rolldown({ input: join(dist, entry), platform: 'browser', logLevel: 'silent' });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  const chunks = new Map(output.filter(({ type }) => type === 'chunk').map((chunk) => [chunk.fileName, chunk]));
  const first = new Set();
  const add = (chunk) => {
    if (!chunk || first.has(chunk)) return;
    first.add(chunk);
    for (const name of chunk.imports) add(chunks.get(name));
  };
  add(output.find(({ isEntry }) => isEntry));
  return Buffer.from([...first].map(({ code }) => code).join(''));
}

const measured = [
  {
    name: 'wasmquant.wasm',
    ...sizes(readFileSync(join(dist, 'wasmquant.wasm'))),
    limit: budget.wasm_brotli_bytes,
    of: 'brotli',
  },
  { name: 'library', ...sizes(await bundled('index.js')), limit: budget.library_gzip_bytes, of: 'gzip' },
  { name: 'worker', ...sizes(await bundled('worker/worker.js')), limit: budget.library_gzip_bytes, of: 'gzip' },
];

process.stdout.write(
  `${'bytes'.padEnd(24)} ${'raw'.padStart(9)} ${'gzip'.padStart(9)} ${'brotli'.padStart(9)}  budget\n`,
);
for (const row of measured) {
  const verdict = row[row.of] <= row.limit ? 'ok' : 'TOO LARGE';
  const numbers = [row.raw, row.gzip, row.brotli].map((bytes) => String(bytes).padStart(9)).join(' ');
  process.stdout.write(`${row.name.padEnd(24)} ${numbers}  ${row.limit} ${row.of}: ${verdict}\n`);
  if (verdict !== 'ok') process.exitCode = 1;
}
