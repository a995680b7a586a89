// npm test: builds and runs every section, or only those named as arguments. Each section prints its name and time; the
// last line sums up the tests that the sections' own runners counted (a check without a runner counts as one).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildAll, buildNative } from './build.mjs';
import { chromium } from './chromium.mjs';
import { main, needs, root, runAndKeep, say } from './command.mjs';
import { clangFormat } from './format.mjs';
import { setUp } from './setup.mjs';
import { cppFiles, filesBelow } from './source_files.mjs';

const node = process.execPath;
const bin = (name) => join(root, 'node_modules/.bin', name);

/** Passed and failed tests, from the closing lines of doctest and node:test; null when there are none. */
function countTests(output) {
  let passed = 0;
  let failed = 0;
  let found = false;
  for (const match of output.matchAll(/\[doctest\] test cases: *\d+ *\| *(\d+) passed *\| *(\d+) failed/g)) {
    passed += Number(match[1]);
    failed += Number(match[2]);
    found = true;
  }
  for (const match of output.matchAll(/^(?:#|ℹ) (pass|fail) (\d+)$/gm)) {
    if (match[1] === 'pass') passed += Number(match[2]);
    else failed += Number(match[2]);
    found = true;
  }
  return found ? { passed, failed } : null;
}

function nodeTests(folder, env = process.env) {
  const files = filesBelow(folder, /[._]test\.m?js$/);
  if (files.length === 0) throw needs(`no test files in ${folder}`);
  return runAndKeep(node, ['--test', '--test-reporter=spec', ...files], { env });
}

/** Runs commands in order and stops at the first that fails. */
async function inOrder(...commands) {
  let output = '';
  for (const [command, args, options] of commands) {
    if (options?.title) process.stdout.write(`${options.title}\n`);
    const result = await runAndKeep(command, args, options);
    output += result.output;
    if (result.exitCode !== 0) return { exitCode: result.exitCode, output };
  }
  return { exitCode: 0, output };
}

/** Every instruction set of src/kernels/arch.h that this machine has. */
function instructionSets() {
  const flags = process.platform === 'linux' && process.arch === 'x64' ? readFileSync('/proc/cpuinfo', 'utf8') : '';
  return [
    'emulated128',
    ...['sse4_2', 'avx2'].filter((name) => new RegExp(`^flags\\b.*\\b${name}\\b`, 'm').test(flags)),
  ];
}

const sanitizers = { ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1', UBSAN_OPTIONS: 'print_stacktrace=1' };

const sections = {
  native: {
    title: 'C++ tests, native, with sanitizers',
    run: () => {
      const program = join(buildNative('debug', 'wasmquant_tests'), 'wasmquant_tests');
      return inOrder(
        ...instructionSets().map((simd) => {
          const env = { ...process.env, ...sanitizers, WASMQUANT_SIMD: simd };
          return [program, [], { env, title: `WASMQUANT_SIMD=${simd}` }];
        }),
      );
    },
  },
  wasm: {
    title: 'the same C++ tests in WebAssembly',
    run: () => {
      const folder = buildNative('wasm', 'wasmquant_tests');
      return runAndKeep(node, [join(folder, 'wasmquant_tests.cjs')]);
    },
  },
  node: {
    title: 'library and command line in Node',
    run: () => {
      buildAll();
      return nodeTests('tests/node');
    },
  },
  browser: {
    title: 'library and page in Chromium',
    run: () => {
      const browser = chromium();
      buildAll();
      return nodeTests('tests/browser', { ...process.env, WASMQUANT_CHROMIUM: browser });
    },
  },
  includes: { title: 'who may include whom', run: () => runAndKeep(node, ['tests/check_includes.mjs']) },
  size: {
    title: 'size budget',
    run: () => {
      buildAll();
      return runAndKeep(node, ['tests/size.mjs']);
    },
  },
  lint: {
    title: 'format, lint and types',
    run: () => {
      const commands = [
        [bin('biome'), ['check', '.']],
        ...['tsconfig.json', 'web/cli/tsconfig.json', 'web/demo/tsconfig.json'].map((project) => {
          return [bin('tsc'), ['-p', project, '--noEmit']];
        }),
      ];
      const format = clangFormat();
      if (format) commands.push([format, ['--dry-run', '--Werror', ...cppFiles()]]);
      else say('clang-format-14 is not installed: the layout of the C++ files is not checked');
      return inOrder(...commands);
    },
  },
};

async function runSection(name) {
  const { title, run } = sections[name];
  process.stdout.write(`\n== ${name}: ${title}\n`);
  const start = performance.now();
  let exitCode;
  let counts;
  try {
    const result = await run();
    exitCode = result.exitCode;
    counts = countTests(result.output);
  } catch (error) {
    process.stdout.write(`${error.setUp || error.exitCode ? error.message : error.stack}\n`);
    exitCode = error.exitCode ?? 1;
  }
  const seconds = (performance.now() - start) / 1000;
  counts ??= exitCode === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
  if (exitCode !== 0 && counts.failed === 0) counts.failed = 1;
  process.stdout.write(
    `== ${name}: ${exitCode === 0 ? 'passed' : `FAILED (exit code ${exitCode})`} in ${seconds.toFixed(1)} s\n`,
  );
  return { name, exitCode, seconds, ...counts };
}

main(async (names) => {
  const unknown = names.filter((name) => !(name in sections));
  if (unknown.length > 0)
    throw Object.assign(needs(`no section ${unknown.join(', ')}; there are ${Object.keys(sections).join(', ')}`), {
      exitCode: 2,
    });
  setUp();
  const results = [];
  for (const name of names.length > 0 ? names : Object.keys(sections)) results.push(await runSection(name));

  process.stdout.write('\n');
  for (const { name, seconds, passed, failed } of results) {
    process.stdout.write(
      `${name.padEnd(10)} ${String(passed).padStart(6)} passed ${String(failed).padStart(4)} failed ${seconds.toFixed(1).padStart(8)} s\n`,
    );
  }
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  process.stdout.write(`${sum('passed')} passed, ${sum('failed')} failed\n`);
  return results.find((result) => result.exitCode !== 0)?.exitCode ?? 0;
});
