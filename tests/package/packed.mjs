// The package as a user gets it: packed by npm, and installed from that file into an application's folder.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';

const npm = (args, cwd) => execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Packs dist/ as it is. `files`: paths in the package. */
export function pack() {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-package-'));
  const [{ filename, files, size, unpackedSize }] = JSON.parse(
    npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root),
  );
  return {
    folder,
    tarball: join(folder, filename),
    files: files.map(({ path }) => path),
    size,
    unpackedSize,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A folder `name` beside the tarball with the package in its node_modules and, if given, `files`: name to text. */
export function install(packed, name, files = {}) {
  const app = join(packed.folder, name);
  mkdirSync(app, { recursive: true });
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }\n');
  npm(['install', '--no-audit', '--no-fund', '--no-package-lock', '--offline', packed.tarball], app);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(app, file), text);
  return app;
}
