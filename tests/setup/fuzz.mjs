// npm run test:fuzz [-- seconds]: libFuzzer with ASan and UBSan on every tests/fuzz/*_fuzz.cpp, each for that long
// (default 20 s). Seeds: tests/fuzz/corpus/<name>, never written to; finds are kept in build/fuzz/corpus/<name>.
// A table at the end; exit code 1 when an input crashes a target, with the input's path.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buildNative } from './build.mjs';
import { findProgram, installPackages, main, needs, root } from './command.mjs';
import { setUp } from './setup.mjs';
import { filesBelow } from './source_files.mjs';

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

function fuzz(name, folder, seconds) {
  const corpus = join(root, 'build/fuzz/corpus', name);
  const finds = join(root, 'build/fuzz/finds', name);
  const seeds = join(root, 'tests/fuzz/corpus', name);
  mkdirSync(corpus, { recursive: true });
  mkdirSync(finds, { recursive: true });
  const args = [
    `-max_total_time=${seconds}`,
    '-max_len=65536',
    '-timeout=10',
    '-rss_limit_mb=2048',
    '-print_final_stats=1',
    `-artifact_prefix=${finds}/`,
  ];
  const before = new Set(readdirSync(finds));
  const { status, stderr } = spawnSync(join(folder, name), [...args, corpus, ...(existsSync(seeds) ? [seeds] : [])], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    env: { ...process.env, UBSAN_OPTIONS: 'print_stacktrace=1' },
  });
  const runs = Number(/stat::number_of_executed_units: (\d+)/.exec(stderr)?.[1] ?? 0);
  const coverage = Number([...stderr.matchAll(/ cov: (\d+)/g)].at(-1)?.[1] ?? 0);
  const crashed = status !== 0 || runs === 0;
  if (crashed) process.stderr.write(`${stderr.split('\n').slice(-60).join('\n')}\n`);
  const found = readdirSync(finds).filter((file) => !before.has(file));
  return { name, runs, coverage, crashed, found: found.map((file) => join('build/fuzz/finds', name, file)) };
}

main((args) => {
  const seconds = Number(args[0] ?? 20);
  if (args.length > 1 || !Number.isInteger(seconds) || seconds < 1) {
    throw Object.assign(needs('usage: npm run test:fuzz [-- SECONDS per target]'), { exitCode: 2 });
  }
  setUp().WASMQUANT_FUZZ_CXX = fuzzCompiler();
  const names = filesBelow('tests/fuzz', /_fuzz\.cpp$/).map((file) => basename(file, '.cpp'));
  if (names.length === 0) throw needs('no tests/fuzz/*_fuzz.cpp');
  const folder = buildNative('fuzz', ...names);

  const results = [];
  for (const name of names) {
    process.stderr.write(`fuzzing ${name} for ${seconds} s\n`);
    results.push(fuzz(name, folder, seconds));
  }
  process.stdout.write(`${'target'.padEnd(28)} ${'runs'.padStart(12)} ${'coverage'.padStart(9)}  outcome\n`);
  for (const { name, runs, coverage, crashed, found } of results) {
    const outcome = crashed ? `CRASH ${found.join(' ')}` : 'ok';
    process.stdout.write(
      `${name.padEnd(28)} ${String(runs).padStart(12)} ${String(coverage).padStart(9)}  ${outcome}\n`,
    );
  }
  const failed = results.filter((result) => result.crashed).length;
  process.stdout.write(`fuzz: ${results.length - failed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
});
