// npm run test:package: what npm would publish. Its files, its exports as bundlers and TypeScript resolve them (publint,
// attw), its types under several versions of TypeScript, the command that it installs. A line per check; exit code 1 when
// one fails.
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { npmPeers } from '../setup/npm_peers.mjs';
import { install, pack } from './packed.mjs';

const tools = {
  publint: '0.3.25',
  '@arethetypeswrong/cli': '0.18.5',
  'typescript-5.7': 'npm:typescript@5.7.3',
  'typescript-5.9': 'npm:typescript@5.9.3',
  'typescript-6': 'npm:typescript@6.0.3',
  'typescript-7': 'npm:typescript@7.0.2',
};

/** Everything that the package may hold; a file that none of these allows is a mistake, and each must allow one. */
const allowed = [
  /^package\.json$/,
  /^README\.md$/,
  /^LICENSE$/,
  /^CHANGELOG\.md$/,
  /^dist\/THIRD-PARTY-NOTICES\.txt$/,
  /^dist\/([a-z_]+\/)?[a-z0-9_]+\.js$/,
  /^dist\/([a-z_]+\/)?[a-z0-9_]+\.d\.ts$/,
  /^dist\/cli\/[a-z0-9_-]+\.cjs$/,
  /^dist\/wasmquant\.wasm$/,
  /^dist\/wasmquant\.wasm\.d\.ts$/,
  /^dist\/schema\/[a-z0-9-]+\.json$/,
];

function checkContents({ files }) {
  const strange = files.filter((file) => !allowed.some((pattern) => pattern.test(file)));
  if (strange.length > 0) throw new Error(`not meant for users: ${strange.join(', ')}`);
  const missing = allowed.filter((pattern) => !files.some((file) => pattern.test(file)));
  if (missing.length > 0) throw new Error(`nothing fits ${missing.join(', ')}`);
  const isProgram = (file) => /\.js$/.test(file) && file !== 'dist/cli.js';
  const untyped = files.filter((file) => isProgram(file) && !files.includes(file.replace(/\.js$/, '.d.ts')));
  if (untyped.length > 0) throw new Error(`without types: ${untyped.join(', ')}`);
  const text = readFileSync(join(root, 'package.json'), 'utf8');
  const { exports, bin, dependencies } = JSON.parse(text);
  if (dependencies) throw new Error('the library has run-time dependencies');
  const targets = [...JSON.stringify([exports, bin]).matchAll(/"(?:\.\/)?(dist\/[^"*]+)"/g)].map((match) => match[1]);
  const absent = targets.filter((target) => !files.includes(target));
  if (absent.length > 0) throw new Error(`package.json names ${absent.join(', ')}`);
  return `${files.length} files`;
}

function program(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`exit code ${status}\n${stdout}${stderr}`);
  return stdout;
}

function checkTypes(app, compiler, options) {
  const compilerOptions = {
    target: 'ES2022',
    lib: ['ES2022', 'DOM'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    noEmit: true,
    ...options,
  };
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
  program(process.execPath, [compiler, '-p', 'tsconfig.json'], app);
}

main(() => {
  buildAll();
  const peers = npmPeers('.peers-package', tools);
  const module = (path) => join(peers, 'node_modules', path);
  const packed = pack();
  let passed = 0;
  let failed = 0;
  const check = (name, test) => {
    try {
      const note = test() ?? '';
      process.stdout.write(`${name.padEnd(34)} passed  ${note}\n`);
      passed += 1;
    } catch (error) {
      process.stdout.write(`${name.padEnd(34)} FAILED  ${error.message}\n`);
      failed += 1;
    }
  };
  try {
    check('contents', () => `${checkContents(packed)}, ${packed.size} bytes, unpacked ${packed.unpackedSize}`);
    check('publint', () => {
      const lines = program(module('.bin/publint'), [packed.tarball, '--strict']).trim().split('\n');
      return lines.at(-1);
    });
    check('attw', () => {
      program(module('.bin/attw'), [packed.tarball, '--profile', 'esm-only']);
      return 'as ES modules';
    });
    const app = install(packed, 'app');
    copyFileSync(join(import.meta.dirname, 'types.ts'), join(app, 'types.ts'));
    const resolutions = {
      nodenext: { module: 'NodeNext', moduleResolution: 'NodeNext' },
      bundler: { module: 'ESNext', moduleResolution: 'bundler' },
      'bundler, browser': { module: 'ESNext', moduleResolution: 'bundler', customConditions: ['browser'] },
    };
    for (const version of ['5.7', '5.9', '6', '7'])
      for (const [name, options] of Object.entries(resolutions))
        check(`types, TypeScript ${version}, ${name}`, () =>
          checkTypes(app, module(`typescript-${version}/bin/tsc`), options),
        );
    check('npx wasmquant --version', () => program('npx', ['--no-install', 'wasmquant', '--version'], app).trim());
    check('npx wasmquant quantize', () => {
      const model = join(root, 'tests/files/tiny-llama');
      const args = ['--no-install', 'wasmquant', 'quantize', model, '--preset', 'int8', '-o', 'out', '--json'];
      return `${JSON.parse(program('npx', args, app)).totals.quantized} tensors`;
    });
  } finally {
    packed.remove();
  }
  process.stdout.write(`\npackage: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
