// Programs that tests run beside ours and that npm carries: installed by pinned version into a folder of their own at the
// root of the checkout, so that package-lock.json holds only what building needs.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { needs, root, say } from './command.mjs';

function installed(folder, name) {
  try {
    return JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;
  } catch {
    return null;
  }
}

/**
 * Installs `wanted`, an object of package names (or aliases) and versions (or `npm:package@version`), when they are not
 * there yet. Their install scripts do not run. Returns the folder, whose node_modules has them.
 */
export function npmPeers(name, wanted, env = {}) {
  const folder = join(root, name);
  const versionOf = (spec) => spec.slice(spec.lastIndexOf('@') + 1);
  if (Object.entries(wanted).every(([peer, spec]) => installed(folder, peer) === versionOf(spec))) return folder;
  say(`installing ${Object.keys(wanted).join(', ')} into ${name}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ private: true, dependencies: wanted }, null, 2)}\n`);
  const options = [
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--loglevel',
    'error',
  ];
  const { status } = spawnSync('npm', options, {
    cwd: folder,
    stdio: ['ignore', 2, 2],
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw needs(`npm cannot install ${Object.keys(wanted).join(', ')}`);
  return folder;
}
