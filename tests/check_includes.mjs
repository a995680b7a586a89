// Who may include whom. C++: rooms of src/ include only the rooms listed here (an arrow may be skipped, never reversed);
// xsimd and intrinsics stay in src/kernels, Emscripten in bindings. TypeScript: the command line and the page know the
// library only through its two entries, and both use web/present, which uses neither; code that also runs in a browser
// imports nothing from Node.
// Prints file:line for every breach and ends with exit code 1.
import { readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { root } from './setup/command.mjs';
import { filesBelow } from './setup/source_files.mjs';

const rooms = {
  core: [],
  numeric: ['core'],
  families: ['core'],
  config: ['core', 'numeric', 'families'],
  formats: ['core', 'numeric'],
  conversion: ['core', 'numeric', 'config', 'formats', 'checkpoint'],
  packing: ['core', 'numeric'],
  kernels: ['core', 'numeric'],
  quantize: ['core', 'numeric', 'config', 'kernels'],
  observers: ['core', 'numeric', 'config', 'kernels', 'quantize'],
  algorithms: ['core', 'numeric', 'config', 'kernels', 'quantize', 'observers'],
  model: ['core', 'numeric', 'kernels'],
  checkpoint: ['core', 'numeric', 'families', 'config', 'kernels', 'quantize', 'packing'],
  pipeline: [
    'core',
    'numeric',
    'families',
    'config',
    'formats',
    'packing',
    'kernels',
    'quantize',
    'observers',
    'algorithms',
    'model',
    'checkpoint',
    'conversion',
  ],
};
/** Of config, these rooms read the plain structs only. */
const specOnly = new Set(['quantize', 'observers', 'algorithms']);

const breaches = [];

/** Calls `visit(line, number)` for each line of a file. */
function eachLine(file, visit) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) visit(line, `${file}:${index + 1}`);
}

function checkCpp(file) {
  const [top, room] = file.split('/');
  const inSource = top === 'src';
  const allowed = inSource ? rooms[room] : Object.keys(rooms);
  if (!allowed) {
    breaches.push(`${file}:1: src/${room} is not a known room; add it to tests/check_includes.mjs`);
    return;
  }
  eachLine(file, (line, where) => {
    const include = /^\s*#\s*include\s*([<"])([^>"]+)[>"]/.exec(line);
    const vendor = include?.[2] ?? '';
    const isKernel = inSource && room === 'kernels';
    if (/^xsimd\//.test(vendor) && !isKernel && top !== 'tests')
      breaches.push(`${where}: xsimd belongs to src/kernels`);
    if (/^(\w*mmintrin|immintrin|x86intrin|arm_neon|wasm_simd128)\.h$/.test(vendor) && !isKernel)
      breaches.push(`${where}: intrinsics belong to src/kernels`);
    if (/^emscripten(\/|\.h)/.test(vendor) && top !== 'bindings')
      breaches.push(`${where}: Emscripten belongs to bindings`);
    if (inSource && !isKernel && /\bxsimd::/.test(line)) breaches.push(`${where}: xsimd:: belongs to src/kernels`);
    if (top !== 'bindings' && /\bemscripten::/.test(line)) breaches.push(`${where}: emscripten:: belongs to bindings`);

    if (include?.[1] !== '"' || vendor.endsWith('.def') || !inSource) return;
    const target = vendor.includes('/') ? vendor.split('/')[0] : room;
    if (vendor.startsWith('.')) breaches.push(`${where}: "${vendor}": includes are relative to src`);
    else if (!(target in rooms)) breaches.push(`${where}: "${vendor}" is in no room of src`);
    else if (target !== room && !allowed.includes(target))
      breaches.push(`${where}: ${room} may not include ${target}; it may include ${allowed.join(', ') || 'nothing'}`);
    else if (target === 'config' && specOnly.has(room) && vendor !== 'config/spec.h')
      breaches.push(`${where}: of config, ${room} may include only config/spec.h`);
  });
}

/** Modules that only Node loads. */
const nodeOnly = /^(node|worker_node)[\w.-]*\.ts$|^\w+_node\.ts$/;
const entries = new Set(['index', 'node']);

function checkTypeScript(file) {
  const [, part] = file.split('/');
  eachLine(file, (line, where) => {
    const match = /(?:^\s*(?:import|export)\b[^'"]*|\bfrom\s*|\bimport\s*\(\s*)['"]([^'"]+)['"]/.exec(line);
    if (!match) return;
    const module = match[1];
    const fromNode = module.startsWith('node:');
    if (fromNode && part === 'lib' && !nodeOnly.test(basename(file)))
      breaches.push(`${where}: ${module}: code that also runs in a browser imports nothing from Node`);
    if (fromNode && (part === 'present' || (part === 'demo' && !basename(file).startsWith('vite.config'))))
      breaches.push(`${where}: ${module} in the page`);
    if (!module.startsWith('.')) return;
    const target = normalize(join(dirname(file), module));
    if (part === 'lib' && !target.startsWith('web/lib/') && !target.startsWith('dist/'))
      breaches.push(`${where}: the library may not import ${target}`);
    if (part !== 'lib' && target.startsWith('web/lib/')) {
      const entry = basename(target).replace(/\.(ts|js)$/, '');
      if (dirname(target) !== 'web/lib' || !entries.has(entry))
        breaches.push(`${where}: ${module}: only web/lib/index.ts and web/lib/node.ts are open to web/${part}`);
    }
    const room = target.split('/')[1];
    if (part !== 'lib' && target.startsWith('web/') && room !== part && room !== 'lib' && room !== 'present') {
      breaches.push(`${where}: web/${part} may not import ${target}`);
    }
  });
}

const cpp = ['src', 'bindings', 'tests'].flatMap((folder) => filesBelow(folder, /\.(cpp|h)$/));
const typescript = filesBelow('web', /\.tsx?$/);
for (const file of cpp) checkCpp(file);
for (const file of typescript) checkTypeScript(file);
for (const breach of breaches) process.stdout.write(`${breach}\n`);
process.stdout.write(`${cpp.length} C++ and ${typescript.length} TypeScript files, ${breaches.length} breaches\n`);
process.exitCode = breaches.length > 0 ? 1 : 0;
