// npm run test:fuzz [-- seconds [target…]]: libFuzzer with ASan and UBSan on every file of tests/fuzz/targets, each for that
// long (default 20 s), one on each core; named targets one after another. Seeds: tests/fuzz/corpus/<name>, never written
// to; finds are kept in build/fuzz/corpus/<name>. Then the native build against WebAssembly (tests/fuzz/replay.mjs).
// A table at the end; exit code 1 when an input crashes a target, with the input's path, or when the builds differ.
// `-- build` ends once the targets are compiled.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { buildNative } from '../setup/build.mjs';
import { findProgram, installPackages, main, needs, root } from '../setup/command.mjs';
import { setUp } from '../setup/setup.mjs';
import { filesBelow } from '../setup/source_files.mjs';
import { compareBuilds } from './replay.mjs';

/** A clang++ that links libFuzzer; installs Debian's when there is none. */
function fuzzCompiler() {
  const canFuzz = (compiler) => {
    const source = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }';
    const args = ['-fsanitize=fuzzer,address,undefined', '-x', 'c++', '-', '-o', '/dev/null'];
    return compiler && spawnSync(compiler, args, { input: source, stdio: ['pipe', 'ignore', 'ignore'] }).status === 0;
  };
  const chosen = process.env.WASMQUANT_FUZZ_CXX;
  if (chosen) {
    if (!canFuzz(chosen)) throw needs(`WASMQUANT_FUZZ_CXX=${chosen} does not link libFuzzer`);
    return chosen;
  }
  const find = () => ['clang++', 'clang++-14'].map((name) => findProgram(name)).find(canFuzz);
  const found = find() ?? (installPackages('clang-14', 'libclang-rt-14-dev') ? find() : null);
  if (!found)
    throw needs(
      'fuzzing needs clang with libFuzzer: install clang-14 and libclang-rt-14-dev, or set WASMQUANT_FUZZ_CXX',
    );
  return found;
}

/** What a target starts from besides its own corpus. */
const otherSeeds = {
  safetensors_fuzz: ['tests/files/hostile'],
  safetensors_index_fuzz: ['tests/files/hostile'],
  onnx_fuzz: ['tests/files/onnx_quantized'],
  json_fuzz: ['tests/files/hostile', 'tests/fuzz/corpus/config_fuzz'],
};
/** Inputs of each kind that native and WebAssembly builds are compared by, for each second of fuzzing. */
const replayedPerSecond = 100;

async function fuzz(name, folder, seconds) {
  const corpus = join(root, 'build/fuzz/corpus', name);
  const finds = join(root, 'build/fuzz/finds', name);
  const seeds = [`tests/fuzz/corpus/${name}`, ...(otherSeeds[name] ?? [])].map((path) => join(root, path));
  mkdirSync(corpus, { recursive: true });
  mkdirSync(finds, { recursive: true });
  const args = [
    `-max_total_time=${seconds}`,
    '-max_len=65536',
    '-timeout=10',
    '-rss_limit_mb=2048',
    '-print_final_stats=1',
    `-artifact_prefix=${finds}/`,
    corpus,
    ...seeds.filter((path) => existsSync(path)),
  ];
  const before = new Set(readdirSync(finds));
  const child = spawn(join(folder, name), args, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, UBSAN_OPTIONS: 'print_stacktrace=1' },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const [status] = await once(child, 'close');
  const runs = Number(/stat::number_of_executed_units: (\d+)/.exec(stderr)?.[1] ?? 0);
  const coverage = Number([...stderr.matchAll(/ cov: (\d+)/g)].at(-1)?.[1] ?? 0);
  const crashed = status !== 0 || runs === 0;
  if (crashed) process.stderr.write(`${stderr.split('\n').slice(-60).join('\n')}\n`);
  const found = readdirSync(finds).filter((file) => !before.has(file));
  return { name, runs, coverage, crashed, found: found.map((file) => join('build/fuzz/finds', name, file)) };
}

main(async ([duration = '20', ...wanted]) => {
  const seconds = duration === 'build' ? 1 : Number(duration);
  const all = filesBelow('tests/fuzz/targets', /\.cpp$/).map((file) => basename(file, '.cpp'));
  const unknown = wanted.filter((name) => !all.includes(name));
  if (!Number.isInteger(seconds) || seconds < 1 || unknown.length > 0) {
    const usage = `usage: npm run test:fuzz [-- SECONDS per target, or build [TARGET…]]; targets: ${all.join(', ')}`;
    throw Object.assign(needs(usage), { exitCode: 2 });
  }
  setUp().WASMQUANT_FUZZ_CXX = fuzzCompiler();
  const names = wanted.length > 0 ? wanted : all;
  const folder = buildNative('fuzz', ...names);
  if (duration === 'build') return 0;

  const waiting = [...names];
  const results = [];
  const work = async () => {
    for (let name = waiting.shift(); name; name = waiting.shift()) {
      process.stderr.write(`fuzzing ${name} for ${seconds} s\n`);
      results.push(await fuzz(name, folder, seconds));
    }
  };
  await Promise.all(Array.from({ length: wanted.length > 0 ? 1 : availableParallelism() }, work));
  results.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
  process.stdout.write(`${'target'.padEnd(28)} ${'runs'.padStart(12)} ${'coverage'.padStart(9)}  outcome\n`);
  for (const { name, runs, coverage, crashed, found } of results) {
    const outcome = crashed ? `CRASH ${found.join(' ')}` : 'ok';
    process.stdout.write(
      `${name.padEnd(28)} ${String(runs).padStart(12)} ${String(coverage).padStart(9)}  ${outcome}\n`,
    );
  }
  const failed = results.filter((result) => result.crashed).length;
  let differences = 0;
  if (wanted.length === 0) {
    const [native, wasm] = ['debug', 'wasm'].map((preset) => buildNative(preset, 'wasmquant_replay'));
    const programs = [join(native, 'wasmquant_replay'), join(wasm, 'wasmquant_replay.cjs')];
    differences = compareBuilds(root, ...programs, join(root, 'build/fuzz'), seconds * replayedPerSecond);
  }
  process.stdout.write(`fuzz: ${results.length - failed} passed, ${failed} failed, ${differences} differences\n`);
  return failed > 0 || differences > 0 ? 1 : 0;
});
