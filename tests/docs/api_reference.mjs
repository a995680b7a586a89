// The API reference, from the docstrings of the library's public types (typedoc, which has its own older TypeScript).
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CommandFailed, root } from '../setup/command.mjs';
import { npmPeers } from '../setup/npm_peers.mjs';

/** Writes dist/demo/docs, beside the page; a warning is an error. Returns the number of pages. */
export function buildReference() {
  const peers = npmPeers('.peers-docs', { typedoc: '0.28.20', typescript: '6.0.3', '@types/node': '20.19.43' });
  const out = join(root, 'dist/demo/docs');
  const args = ['--options', join(root, 'web/docs/typedoc.json'), '--out', out];
  const { status } = spawnSync(join(peers, 'node_modules/.bin/typedoc'), args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new CommandFailed('typedoc', status ?? 1);
  return readdirSync(out, { recursive: true }).filter((name) => name.endsWith('.html')).length;
}
