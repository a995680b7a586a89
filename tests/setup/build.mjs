// Builds: C++ through the CMake presets into build/<preset>, then dist/: module, library, command line, page.
//   node tests/setup/build.mjs                    all of dist/
//   node tests/setup/build.mjs PRESET TARGET...   C++ alone
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { codeTexts, codeTypes } from '../../bindings/schema/codes.mjs';
import { configTypes, dialectTypes } from '../../bindings/schema/config_types.mjs';
import { main, root, run, runAndKeep, say } from './command.mjs';
import { noticesFor } from './notices.mjs';
import { setUp } from './setup.mjs';

/** Whether build/<preset> holds a finished configuration of this very checkout, with its present targets. */
function isConfigured(folder) {
  const cache = join(folder, 'CMakeCache.txt');
  if (!existsSync(cache) || isNewer(join(root, 'CMakeLists.txt'), join(folder, 'build.ninja'))) return false;
  const home = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8'));
  return home?.[1] === root;
}

/** Configures when needed and builds the targets. Returns the build folder. */
export function buildNative(preset, ...targets) {
  const env = setUp();
  const folder = join(root, 'build', preset);
  if (!isConfigured(folder)) {
    say(`configuring build/${preset}`);
    run('cmake', ['--fresh', '--preset', preset, '--log-level=WARNING'], { env, quietStdout: true });
  }
  say(`building ${targets.join(' ')} (${preset})`);
  const jobs = String(availableParallelism());
  run('cmake', ['--build', folder, '--parallel', jobs, '--target', ...targets], { env, quietStdout: true });
  return folder;
}

/** Configures, builds and tests by a workflow preset, whose configuration is in build/`folder`. Resolves to `{ exitCode, output }`. */
export function runWorkflow(preset, folder) {
  const cores = String(availableParallelism());
  const env = { ...setUp(), CMAKE_BUILD_PARALLEL_LEVEL: cores, CTEST_PARALLEL_LEVEL: cores };
  const fresh = isConfigured(join(root, 'build', folder)) ? [] : ['--fresh'];
  say(`building and testing ${preset}`);
  return runAndKeep('cmake', ['--workflow', '--preset', preset, ...fresh], { env });
}

function isNewer(source, target) {
  return !existsSync(target) || statSync(source).mtimeMs > statSync(target).mtimeMs;
}

function copyWhenNewer(source, target) {
  if (isNewer(source, target)) copyFileSync(source, target);
}

/** When a file, or anything below a folder, changed last; a file that left a folder changed the folder. */
function changedAt(path) {
  const status = statSync(join(root, path));
  if (!status.isDirectory()) return status.mtimeMs;
  return readdirSync(join(root, path)).reduce(
    (latest, name) => Math.max(latest, changedAt(join(path, name))),
    status.mtimeMs,
  );
}

/** Makes `output` when it is missing, or when one of its sources changed since it was last made without an error. */
function makeWhenNewer(output, sources, make) {
  const stamp = join(root, 'build', `${output.replaceAll('/', '-')}.made`);
  if (existsSync(join(root, output)) && existsSync(stamp)) {
    const made = statSync(stamp).mtimeMs;
    if (sources.every((source) => changedAt(source) < made)) return;
  }
  const started = new Date();
  make();
  writeFileSync(stamp, '');
  utimesSync(stamp, started, started);
}

/** Written when it differs: what is made of it is made again then. */
function writeGenerated(file, text) {
  const path = join(root, file);
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Names of formats as types, and what is known of each. */
function formatTypes(formats) {
  const union = (rows) =>
    Object.keys(rows)
      .map((name) => `'${name}'`)
      .join(' | ');
  return `// Made by the build of the core's tables of formats (bindings/schema/main.cpp).
/** A file format that can be opened. */
export type InputFormat = ${union(formats.inputs)};
/** A format that can be written. */
export type OutputFormat = ${union(formats.outputs)};
export const table = ${JSON.stringify(formats, null, 2)} as const;
`;
}

/**
 * dist/engine.js and dist/wasmquant.wasm, the JSON Schemas of the config dialects, and what is generated in web. The
 * library instantiates the module itself, so the two names are free.
 */
function buildModule() {
  const folder = buildNative('wasm', 'wasmquant', 'wasmquant_schema');
  const { schemas, dialects, presets, formats, codes, keys, runtimes } = JSON.parse(
    execFileSync(process.execPath, [join(folder, 'wasmquant_schema.cjs')], { encoding: 'utf8' }),
  );
  mkdirSync(join(root, 'dist/schema'), { recursive: true });
  for (const [dialect, schema] of Object.entries(schemas)) {
    writeFileSync(join(root, `dist/schema/${dialect}.json`), `${JSON.stringify(schema, null, 2)}\n`);
  }
  writeGenerated('web/lib/generated/formats.ts', formatTypes(formats));
  writeGenerated('web/lib/generated/config_types.ts', configTypes(schemas, keys));
  writeGenerated('web/lib/generated/dialects.ts', dialectTypes(dialects, presets));
  writeGenerated('web/lib/generated/codes.ts', codeTypes(codes));
  writeGenerated('web/present/generated/code_texts.ts', codeTexts(codes));
  writeGenerated('web/lib/generated/runtimes.ts', runtimeTypes(runtimes).library);
  writeGenerated('web/present/generated/runtimes.ts', runtimeTypes(runtimes).shown);
  mkdirSync(join(root, 'dist/engine'), { recursive: true });
  copyWhenNewer(join(folder, 'wasmquant.js'), join(root, 'dist/engine.js'));
  copyWhenNewer(join(folder, 'wasmquant.wasm'), join(root, 'dist/wasmquant.wasm'));
}

/** Runtimes for the library (the schemes of a curve) and for what both programs show. */
function runtimeTypes({ runtimes, places }) {
  const head = '// Made by the build of src/runtimes/runtimes.def.\n';
  const schemes = Object.entries(runtimes)
    .filter(([, { presets }]) => presets.length > 0)
    .map(([id, { formats, presets }]) => [id, { format: formats[0], schemes: presets }]);
  const web = places.web.runtimes;
  return {
    library: `${head}/** Where a result is to run. \`web\` is what a page runs: GGUF, or ONNX for an ONNX model. */
export type RuntimeName = ${[...schemes.map(([id]) => id), 'web'].map((id) => `'${id}'`).join(' | ')};
/** The schemes that a curve tries, by runtime. */
export const curveRuntimes = ${JSON.stringify(Object.fromEntries(schemes), null, 2)} as const;
/** Those of a web page. */
export const webRuntimes = ${JSON.stringify(web)} as const;
`,
    shown: `${head}export const runtimes = ${JSON.stringify(runtimes, null, 2)} as const;
export const places = ${JSON.stringify(places, null, 2)} as const;
`,
  };
}

const settings = ['package-lock.json', 'tests/setup/build.mjs'];

/** Modules and declarations of web/lib into dist; tsc does not copy the declarations of the module's own JavaScript. */
function buildLibrary() {
  setUp();
  makeWhenNewer('dist/node.js', ['web/lib', 'tsconfig.json', 'dist/engine.js', ...settings], () => {
    say('building the library (tsc)');
    run(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.json'], { quietStdout: true });
    for (const name of ['engine.d.ts', 'wasmquant.wasm.d.ts'])
      copyFileSync(join(root, 'web/lib', name), join(root, 'dist', name));
    run(join(root, 'node_modules/.bin/rolldown'), ['-c', 'web/lib/rolldown.config.mjs'], { quietStdout: true });
  });
}

/** dist/cli.js and the files of dist/cli, which it loads: with their dependencies inside. */
function buildCommandLine() {
  makeWhenNewer('dist/cli.js', ['web/cli', 'dist/engine.js', 'web/lib', 'web/present', ...settings], () => {
    say('building the command line (rolldown)');
    run(join(root, 'node_modules/.bin/rolldown'), ['-c', 'web/cli/rolldown.config.mjs'], { quietStdout: true });
    chmodSync(join(root, 'dist/cli.js'), 0o755);
  });
}

/** dist/demo. */
function buildPage() {
  const built = ['dist/node.js', 'dist/engine.js', 'dist/wasmquant.wasm'];
  makeWhenNewer('dist/demo/index.html', ['web', 'tests/files/tiny-llama', ...built, ...settings], () => {
    say('building the page (vite)');
    run(join(root, 'node_modules/.bin/vite'), ['build', 'web/demo', '--logLevel', 'warn'], { quietStdout: true });
  });
}

/** What others have in the package, and in the page. */
function buildNotices() {
  writeFileSync(join(root, 'dist/THIRD-PARTY-NOTICES.txt'), noticesFor('web/cli', 'web/lib', 'web/present'));
  writeFileSync(join(root, 'dist/demo/THIRD-PARTY-NOTICES.txt'), noticesFor('web/demo', 'web/lib', 'web/present'));
}

/** Everything that dist/ holds, in the order of dependence; WASMQUANT_BUILT says that it is built already. */
export function buildAll() {
  if (process.env.WASMQUANT_BUILT) return;
  buildModule();
  buildLibrary();
  buildCommandLine();
  buildPage();
  buildNotices();
}

if (process.argv[1] === import.meta.filename)
  main(([preset, ...targets]) => void (preset ? buildNative(preset, ...targets) : buildAll()));
