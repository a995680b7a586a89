// Who may use whom. The rooms of src and of web/lib use only the rooms that rooms.mjs lists; xsimd and intrinsics stay in
// src/kernels, Emscripten in bindings. The command line and the page know the library only through its two entries, and
// share web/present; code that also runs in a browser imports nothing from Node. A folder holds at most 25 files.
// Prints the table of measures.mjs (--places: and where each comes from) and file:line for every breach, and ends with exit code 1.
// A gate that holds is listed in budget.json as enforced, and stays so.
import { readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { root } from '../setup/command.mjs';
import { filesBelow } from '../setup/source_files.mjs';
import { enforced, measure, table } from './measures.mjs';
import { cppRooms, libraryRooms, webRooms } from './rooms.mjs';

const mostFilesInAFolder = 25;
const longWithoutHead = 120;

const breaches = [];

/** Calls `visit(line, number)` for each line of a file. */
function eachLine(file, visit) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) visit(line, `${file}:${index + 1}`);
}

/** The room of a file below `top`: its folder. */
const roomOf = (file, top) => dirname(file).slice(top.length + 1);

/** Rooms use rooms that stand above them. */
function checkTable(rooms, name) {
  const above = new Set();
  for (const [room, used] of Object.entries(rooms)) {
    for (const other of used)
      if (!above.has(other))
        breaches.push(`tests/architecture/rooms.mjs:1: ${name}: ${room} uses ${other}, which is not above it`);
    above.add(room);
  }
}

function checkCpp(file) {
  const [top] = file.split('/');
  const inSource = top === 'src';
  const room = inSource ? roomOf(file, 'src') : '';
  const allowed = inSource ? cppRooms[room] : [];
  if (!allowed) {
    breaches.push(`${file}:1: src/${room} is not a known room; add it to tests/architecture/rooms.mjs`);
    return;
  }
  eachLine(file, (line, where) => {
    const include = /^\s*#\s*include\s*([<"])([^>"]+)[>"]/.exec(line);
    const vendor = include?.[2] ?? '';
    const isKernel = inSource && /^kernels\b/.test(room);
    if (/^xsimd\//.test(vendor) && !isKernel && top !== 'tests')
      breaches.push(`${where}: xsimd belongs to src/kernels`);
    if (/^(\w*mmintrin|immintrin|x86intrin|arm_neon|wasm_simd128)\.h$/.test(vendor) && !isKernel)
      breaches.push(`${where}: intrinsics belong to src/kernels`);
    if (/^emscripten(\/|\.h)/.test(vendor) && top !== 'bindings')
      breaches.push(`${where}: Emscripten belongs to bindings`);
    if (inSource && !isKernel && /\bxsimd::/.test(line)) breaches.push(`${where}: xsimd:: belongs to src/kernels`);
    if (top !== 'bindings' && /\bemscripten::/.test(line)) breaches.push(`${where}: emscripten:: belongs to bindings`);

    if (top !== 'tests' && /\bparse\w*\(\s*json::write\(/.test(line))
      breaches.push(`${where}: a value is written in order to be parsed: use the function that takes a json::Value`);
    if (top !== 'tests' && room !== 'core' && /\bmembers\(\)(\[\w+\]|\.(front|back)\(\))/.test(line))
      breaches.push(`${where}: a member is read by its position: read it by its name`);

    if (include?.[1] !== '"' || !inSource) return;
    const target = dirname(vendor);
    if (vendor.startsWith('.')) breaches.push(`${where}: "${vendor}": includes are relative to src`);
    else if (!(target in cppRooms)) breaches.push(`${where}: "${vendor}" is in no room of src`);
    else if (target !== room && !allowed.includes(target))
      breaches.push(`${where}: ${room} may not include ${target}; it may include ${allowed.join(', ') || 'nothing'}`);
  });
}

/** Modules that only Node loads. */
const nodeOnly = /^(node|worker_node)[\w.-]*\.ts$|^\w+_node\.ts$/;
const entries = new Set(['index', 'node', 'internal']);

function checkRoom(file, target, where) {
  if (!target.startsWith('web/lib/')) {
    breaches.push(`${where}: the library may not import ${target}`);
    return;
  }
  if (target === 'web/lib/engine.js' && roomOf(file, 'web/lib') === 'engine') return; // what Emscripten writes
  const [room, other] = [file, target].map((path) => roomOf(path, 'web/lib'));
  if (!(room in libraryRooms)) breaches.push(`${where}: web/lib/${room} is not a known room; add it to rooms.mjs`);
  else if (room !== other && !libraryRooms[room].includes(other) && !entryUse(room, target))
    breaches.push(`${where}: ${room || 'web/lib'} may not import ${other || target}`);
}

/** wasmquant/onnxruntime adds to an entry of the library. */
const entryUse = (room, target) =>
  room === 'onnxruntime' && entries.has(basename(target).replace(/\.js$/, '')) && dirname(target) === 'web/lib';

function checkFolders(files) {
  const counts = new Map();
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  for (const [folder, count] of counts)
    if (count > mostFilesInAFolder) breaches.push(`${folder}: ${count} files; at most ${mostFilesInAFolder}`);
}

/** A long source says first what it is for; short ones leave that to their header. */
function checkHead(file) {
  const text = readFileSync(join(root, file), 'utf8');
  if (file.endsWith('.cpp') && text.split('\n').length > longWithoutHead + 1 && !text.startsWith('//'))
    breaches.push(`${file}:1: over ${longWithoutHead} lines without a comment at its head`);
}

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
    if (module === 'wasmquant' && part === 'present' && !/^\s*import type\b/.test(line))
      breaches.push(`${where}: of the library, web/present uses only types`);
    if (!module.startsWith('.')) return;
    const target = normalize(join(dirname(file), module));
    if (part === 'lib') checkRoom(file, target, where);
    if (part !== 'lib' && target.startsWith('web/lib/')) {
      const entry = basename(target).replace(/\.(ts|js)$/, '');
      if (dirname(target) !== 'web/lib' || !entries.has(entry))
        breaches.push(`${where}: ${module}: only web/lib/index.ts, node.ts and internal.ts are open to web/${part}`);
    }
    const room = target.split('/')[1];
    if (part !== 'lib' && target.startsWith('web/') && room !== part && !webRooms[part].includes(room))
      breaches.push(`${where}: web/${part} may not import ${target}`);
  });
}

const cpp = ['src', 'bindings', 'tests'].flatMap((folder) => filesBelow(folder, /\.(cpp|h)$/));
const typescript = filesBelow('web', /\.tsx?$/);
checkTable(cppRooms, 'src');
checkTable(webRooms, 'web');
checkTable(libraryRooms, 'web/lib');
checkFolders(['src', 'bindings', 'web'].flatMap((folder) => filesBelow(folder, /\.(cpp|h|def|tsx?)$/)));
for (const file of cpp) {
  checkCpp(file);
  checkHead(file);
}
for (const file of typescript) checkTypeScript(file);

const measures = measure();
process.stdout.write(table(measures, process.argv.includes('--places')));
for (const { name, value, gate, found } of measures) {
  const key = name.replace(/ \(.*/, '');
  if (value > gate && enforced.has(key))
    breaches.push(`tests/architecture/budget.json:1: ${name}: ${value}, at most ${gate} ${found?.join(', ') ?? ''}`);
  if (value <= gate && !enforced.has(key))
    breaches.push(`tests/architecture/budget.json:1: ${name} holds: list it as enforced`);
}
for (const breach of breaches) process.stdout.write(`${breach}\n`);
process.stdout.write(`${cpp.length} C++ and ${typescript.length} TypeScript files, ${breaches.length} breaches\n`);
process.exitCode = breaches.length > 0 ? 1 : 0;
