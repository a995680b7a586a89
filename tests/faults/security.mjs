// What a file or a name from a stranger may not do, tried: run code, reach the network, write outside the target, fill the
// memory, take for ever, change JavaScript's objects, write to the terminal, become part of a page.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { openLibrary } from '../browser/library_page.mjs';
import { npyFile, npzFile } from '../node/sources/npy_file.mjs';
import { findProgram, root } from '../setup/command.mjs';
import { setUp } from '../setup/setup.mjs';
import { filesBelow } from '../setup/source_files.mjs';
import { pageMarkup } from './markup.mjs';
import { pagePolicy } from './policy.mjs';

const cliPath = join(root, 'dist/cli.js');
const tiny = join(root, 'tests/files/tiny-llama/model.safetensors');

/** A safetensors file of F32 matrices [8, 32] with these names. */
function modelOf(path, names) {
  const header = Object.create(null);
  names.forEach((name, at) => {
    header[name] = { dtype: 'F32', shape: [8, 32], data_offsets: [at * 1024, (at + 1) * 1024] };
  });
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const data = new Float32Array(names.length * 256).map((_, i) => Math.sin(i));
  writeFileSync(path, Buffer.concat([length, text, Buffer.from(data.buffer)]));
  return path;
}

const cli = (args, options = {}) => spawnSync(process.execPath, [cliPath, ...args], { encoding: 'utf8', ...options });

/** Scripts that are shipped have no way to make code of text, and the library works where a policy forbids it. */
async function noEval(_folder, check) {
  const dist = join(root, 'dist');
  for (const name of readdirSync(dist).filter((file) => file.endsWith('.js'))) {
    const found = /\beval\s*\(|\bnew\s+Function\b/.exec(readFileSync(join(dist, name), 'utf8'));
    check(found === null, `${name} has ${found?.[0]}`);
  }
  const library = await openLibrary({ files: join(root, 'tests/files/tiny-llama') });
  try {
    const outcome = await library.page.evaluate(async () => {
      const quantizer = await window.createQuantizer({ threads: 2 });
      const model = await quantizer.open(await (await fetch('files/model.safetensors')).blob());
      const report = await quantizer.quantizeModel(model, 'int8', { target: new WritableStream() });
      const before = window.complaints.length;
      const script = document.createElement('script');
      script.textContent = 'window.hit = true';
      document.head.append(script);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return { tensors: report.tensors.length, before, after: window.complaints.length, hit: 'hit' in window };
    });
    check(outcome.tensors > 0 && outcome.before === 0, `the policy was violated ${outcome.before} times`);
    check(outcome.after > 0 && !outcome.hit, 'the policy forbids nothing');
    const strange = library.requests.filter((url) => !url.startsWith(library.server.url) && !/^(data|blob):/.test(url));
    check(strange.length === 0, `requests to ${strange}`);
  } finally {
    await library.close();
  }
}

/** Every command with sockets and name look-ups that tell. */
async function noNetwork(folder, check) {
  const log = join(folder, 'network.log');
  const watch = join(folder, 'watch.mjs');
  writeFileSync(
    watch,
    `import { appendFileSync } from 'node:fs'; import net from 'node:net'; import dns from 'node:dns';
     const told = (what) => appendFileSync(${JSON.stringify(log)}, what + '\\n');
     const { connect } = net.Socket.prototype;
     net.Socket.prototype.connect = function (...args) { told('connect'); return connect.apply(this, args); };
     const { lookup } = dns; dns.lookup = (...args) => { told('lookup'); return lookup(...args); };
     const real = globalThis.fetch; globalThis.fetch = (...args) => { told('fetch'); return real(...args); };`,
  );
  writeFileSync(log, '');
  const index = join(folder, 'remote');
  mkdirSync(index);
  writeFileSync(join(index, 'model.safetensors.index.json'), '{"weight_map":{"a":"http://127.0.0.1:9/x.safetensors"}}');
  const commands = [
    ['inspect', tiny],
    ['plan', tiny, '-p', 'int8'],
    ['quantize', tiny, '-o', join(folder, 'network-out'), '-p', 'int8'],
    ['compare', tiny, tiny],
    ['config', 'presets'],
    ['inspect', index],
    ['inspect', join(root, 'tests/files/hostile/44-parent.onnx')],
  ];
  const env = { ...process.env, NODE_OPTIONS: `--import=${watch}` };
  for (const command of commands) {
    cli(command, { env });
    check(readFileSync(log, 'utf8') === '', `${command[0]} reached for the network`);
  }
  cli(['inspect', 'http://127.0.0.1:9/model.safetensors'], { env });
  check(readFileSync(log, 'utf8') !== '', 'an address that was given is not seen by the watch');
}

/** Links in the target, and names that lead out of it. */
async function onlyTheTarget(folder, check) {
  const place = join(folder, 'place');
  const victim = join(place, 'victim');
  mkdirSync(victim, { recursive: true });
  writeFileSync(join(victim, 'model.safetensors'), 'mine\n');
  const out = join(place, 'out');
  mkdirSync(out);
  symlinkSync(join(victim, 'model.safetensors'), join(out, 'model.safetensors'));
  const untouched = () =>
    readFileSync(join(victim, 'model.safetensors'), 'utf8') === 'mine\n' && readdirSync(victim).length === 1;
  const result = cli(['quantize', tiny, '-o', out, '-p', 'int8', '--force']);
  check(result.status === 0 && untouched(), `a link in the target was followed: ${result.stderr}`);
  const { createQuantizer } = await import('../../dist/node.js');
  const { openPathTarget } = await import('../../dist/io/node_target.js');
  for (const name of ['../x', 'a/../../x', '/tmp/x', '..', '', 'a\\..\\..\\x', '../victim/x']) {
    const target = await openPathTarget(join(place, `names-${Math.random()}`), false, []);
    const error = await target.create(name, 1).catch((thrown) => thrown);
    await target.abort(null);
    check(error.code === 'target-invalid' && untouched(), `${JSON.stringify(name)} was taken as a name: ${error}`);
  }
  const linked = join(place, 'linked');
  mkdirSync(linked);
  symlinkSync(victim, join(linked, 'onnx'));
  const target = await openPathTarget(linked, true, []);
  const file = await target.create('onnx/model.onnx', 1);
  await file.write(new Uint8Array(1), 0);
  const error = await target.commit().catch((thrown) => thrown);
  await target.abort(null);
  check(error?.code === 'target-invalid' && untouched(), `a linked folder in the target was followed: ${error}`);
  // Names in shards' indexes and of external data: every one of the corpus that leads elsewhere.
  const cases = JSON.parse(readFileSync(join(root, 'tests/files/hostile/expected.json'), 'utf8'));
  const quantizer = await createQuantizer({ threads: 0 });
  for (const { file: name } of cases.filter((each) => /^(22|44)-/.test(each.file))) {
    const refused = await quantizer.open(join(root, 'tests/files/hostile', name)).then(
      () => null,
      (thrown) => thrown.code,
    );
    check(refused !== null, `${name} was opened`);
  }
  await quantizer[Symbol.asyncDispose]();
}

/** Archives that inflate to more than they say, or to more than is allowed; peak memory in a process of its own. */
async function bombs(folder, check) {
  const zeros = Buffer.alloc(64 * 2 ** 20);
  const one = npyFile('<f4', [4], new Float32Array(4));
  const packed = deflateRawSync(Buffer.concat([one, zeros]));
  const said = (bytes) => ({ local: { bytes }, central: { bytes } });
  const files = {
    'says-less': npzFile([{ name: 'w.npy', bytes: one, deflate: true, packed, ...said(one.length) }]),
    'says-2-gib': npzFile([{ name: 'w.npy', bytes: one, deflate: true, packed, ...said(2 ** 31) }]),
    'many-say-512-mib': npzFile(
      ['a', 'b', 'c'].map((name) => ({ name: `${name}.npy`, bytes: one, deflate: true, packed, ...said(2 ** 29) })),
    ),
    slip: npzFile([{ name: '../../slip.npy', bytes: one }]),
  };
  for (const [name, bytes] of Object.entries(files)) {
    const path = join(folder, `${name}.npz`);
    writeFileSync(path, bytes);
    const script = `import { createQuantizer } from ${JSON.stringify(join(root, 'dist/node.js'))};
      const quantizer = await createQuantizer({ threads: 0 });
      let told = 'opened';
      try { await quantizer.open(${JSON.stringify(path)}); } catch (error) { told = error.code; }
      console.log(JSON.stringify([told, process.resourceUsage().maxRSS * 1024]));`;
    const [told, peak] = JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }),
    );
    check(name === 'slip' || told !== 'opened', `${name}: ${told}`);
    check(peak < 300 * 2 ** 20, `${name} took ${(peak / 2 ** 20).toFixed(0)} MiB`);
  }
  check(!readdirSync(join(folder, '..')).includes('slip.npy'), 'an archive wrote a file');
}

/** Steps that a pattern may be expanded to (kMaxSteps in regex_parser.cpp), and basic blocks for each and each byte of a name. */
const largestPattern = 4000;
const blocksPerStep = 16;

/** Steps of hostile patterns: at most linear in the name, and so many for each byte of both. */
async function patterns(folder, check) {
  const env = setUp();
  const program = join(folder, 'pattern_steps');
  const compiler = process.env.CXX ?? findProgram('g++', 'c++');
  const sources = [...filesBelow('src/config/match', /^(regex|name|pattern)\w*\.cpp$/), 'src/core/list.cpp'];
  const counted = ['-std=c++20', '-O1', '-fno-exceptions', '-Isrc', '-c', '-fsanitize-coverage=trace-pc'];
  const objects = sources.map((source, at) => {
    const object = join(folder, `steps-${at}.o`);
    execFileSync(compiler, [...counted, source, '-o', object], {
      cwd: root,
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    return object;
  });
  const main = ['-std=c++20', '-O1', '-Isrc', 'tests/faults/pattern_steps.cpp', ...objects, '-o', program];
  execFileSync(compiler, main, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  const hostile = [
    ['re:(a*)*b', 'a', ''],
    ['re:(a+)+$', 'a', '!'],
    ['re:(a|a|a|a)*(a|aa|aaa)*$', 'a', 'b'],
    ['re:(a|aa)+$', 'a', 'b'],
    ['re:(.*)*x', 'ab', ''],
    ['re:(.*a){20}$', 'a', 'b'],
    ['re:(a?){100}a{100}$', 'a', 'b'],
    ['re:((a{1,10}){1,10}){1,10}$', 'a', 'b'],
    ['re:([^.]+\\.)*x', 'a.', ''],
    ['re:.*.*.*.*.*.*x', 'a', ''],
    ['re:(\\w+\\s?)*$', 'a', '!'],
    ['re:^(([a-z])+.)+[A-Z]([a-z])+$', 'a', ''],
    ['*a*a*a*a*a*a*a*a*b', 'a', ''],
    ['*[a-z]*[a-z]*[a-z]*?*!', 'a', ''],
    [`${'*a'.repeat(50)}b`, 'a', ''],
    [`${'[a-b]'.repeat(60)}*x`, 'a', ''],
  ];
  const input = hostile.map((row) => row.join('\t')).join('\n');
  const lines = execFileSync(program, { input: `${input}\n`, encoding: 'utf8' })
    .trim()
    .split('\n');
  for (const [at, [pattern, piece, end]] of hostile.entries()) {
    const [first, second, third] = lines[at].split(' ').map(Number);
    const nameBytes = 256 * piece.length + end.length;
    check(third - second <= 2.2 * (second - first) + 1000, `${pattern}: ${first}, ${second}, ${third} steps`);
    check(third <= blocksPerStep * largestPattern * (nameBytes + 1), `${pattern}: ${third} steps`);
  }
}

/** Names that JavaScript's objects give a meaning to. */
async function prototypes(folder, check) {
  const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__', 'valueOf'];
  const { createQuantizer } = await import('../../dist/node.js');
  const known = () => Object.getOwnPropertyNames(Object.prototype).sort().join();
  const before = known();
  const quantizer = await createQuantizer({ threads: 0 });
  const path = modelOf(
    join(folder, 'prototypes.safetensors'),
    names.flatMap((name) => [name, `${name}.weight`]),
  );
  const model = await quantizer.open(path);
  const out = join(folder, 'prototypes');
  const report = await quantizer.quantizeModel(model, 'int8', { target: out });
  for (const name of names) {
    check(
      report.tensors.some((tensor) => tensor.name === `${name}.weight`),
      `${name} is not in the report`,
    );
    for (const text of [
      `{"${name}": {"polluted": true}, "global_quant_config": {"weight": {"dtype": "int8"}}}`,
      `{"global_quant_config": {"${name}": {"polluted": true}, "weight": {"dtype": "int8", "${name}": 1}}}`,
      `{"global_quant_config": {}, "layer_quant_config": {"${name}": {"weight": {"dtype": "int4"}}}}`,
    ]) {
      check(Array.isArray(quantizer.checkConfig(text)), `${text} was no config`);
      check(Array.isArray(quantizer.checkConfig(JSON.parse(text))), `${text} was no config`);
    }
  }
  const written = await quantizer.open(out);
  check(written.tensors.length > names.length, 'the output has lost names');
  check((await quantizer.compare(model, written)).tensors.length > 0, 'nothing was compared');
  check(known() === before && !('polluted' in {}), 'Object.prototype changed');
  await quantizer[Symbol.asyncDispose]();
}

/** Every control and format character in a tensor's name, through the commands that print names. */
async function terminal(folder, check) {
  const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
  const codes = [];
  for (let code = 1; code < 0x10000; ++code)
    if (unprintable.test(String.fromCodePoint(code)) && (code < 0xd800 || code > 0xdfff)) codes.push(code);
  const names = codes.map((code) => `m.${String.fromCodePoint(code)}[2J${code}.up_proj.weight`);
  const model = modelOf(join(folder, 'terminal.safetensors'), names);
  for (const [command, ...rest] of [
    ['inspect', '--all'],
    ['plan', '-p', 'int8', '--all'],
    ['quantize', '-p', 'int8', '-o', join(folder, 'terminal')],
    ['compare', model, '--all'],
  ]) {
    const { stdout, stderr } = cli([command, model, ...rest]);
    const text = `${stdout}${stderr}`.replaceAll('\n', '');
    check(text.length > 100, `${command} printed nothing`);
    for (const code of codes)
      check(!text.includes(String.fromCodePoint(code)), `${command} printed U+${code.toString(16)}`);
  }
}

export async function security(folder, _count, fault) {
  const counts = [];
  const subjects = { noEval, noNetwork, onlyTheTarget, bombs, patterns, prototypes, terminal, pageMarkup, pagePolicy };
  for (const [name, attempt] of Object.entries(subjects)) {
    let [tried, failed] = [0, 0];
    const own = join(folder, name);
    mkdirSync(own);
    await attempt(own, (ok, what) => {
      tried += 1;
      if (!ok) failed += 1;
      fault(ok, `${name}: ${what}`);
    });
    counts.push(`${name} ${tried}/${failed}`);
  }
  return `inputs tried/failures: ${counts.join(', ')}`;
}
