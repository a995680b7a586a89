// npm test: builds and runs every section, only those named as arguments, or all but those named behind `--without`. Each section
// prints its name and time; the last line sums up the tests that the sections' runners counted (a check without a runner counts as one).
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { buildAll, runWorkflow } from './build.mjs';
import { chromium } from './chromium.mjs';
import { main, needs, root, runAndKeep, say } from './command.mjs';
import { clangFormat } from './format.mjs';
import { setUp } from './setup.mjs';
import { cppFiles, filesBelow } from './source_files.mjs';

const node = process.execPath;
const bin = (name) => join(root, 'node_modules/.bin', name);

/** Passed and failed tests, from the closing lines of node:test; none when there are no such lines. */
function countTests(output) {
  const counts = {};
  for (const match of output.matchAll(/^(?:#|ℹ) (pass|fail) (\d+)$/gm))
    counts[`${match[1]}ed`] = (counts[`${match[1]}ed`] ?? 0) + Number(match[2]);
  return counts;
}

/** Test files, `atOnce` at a time: one where tests measure how soon a page answers. */
async function nodeTests(folder, atOnce, env = process.env) {
  const files = filesBelow(folder, /[._]test\.m?js$/);
  if (files.length === 0) throw needs(`no test files in ${folder}`);
  const result = await runAndKeep(node, ['--test', '--test-reporter=spec', `--test-concurrency=${atOnce}`, ...files], {
    env,
  });
  return { ...result, ...countTests(result.output) };
}

/** Runs commands in order and stops at the first that fails. */
async function inOrder(...commands) {
  for (const [command, args] of commands) {
    const result = await runAndKeep(command, args);
    if (result.exitCode !== 0) return result;
  }
  return { exitCode: 0 };
}

/**
 * The C++ tests of a preset, a process for each room (cmake/tests.cmake). The native one compiles every program, so that a changed
 * header breaks this section and not a later one that alone uses it.
 */
async function ctest(preset, folder = preset) {
  const result = await runWorkflow(preset, folder);
  const [, failed, all] = /(\d+) tests? failed out of (\d+)/.exec(result.output) ?? [];
  return { ...result, passed: all - failed || 0, failed: Number(failed ?? 0) };
}

const sections = {
  native: { title: 'C++ tests, native, with sanitizers', run: () => ctest('debug') },
  wasm: { title: 'the same C++ tests in WebAssembly', run: () => ctest('wasm') },
  node: {
    title: 'library and command line in Node',
    run: () => {
      buildAll();
      return nodeTests('tests/node', availableParallelism() + 1); // some wait for servers
    },
  },
  browser: {
    title: 'library and page in Chromium',
    run: () => {
      const browser = chromium();
      buildAll();
      return nodeTests('tests/browser', 1, { ...process.env, WASMQUANT_CHROMIUM: browser });
    },
  },
  includes: { title: 'who may include whom', run: () => runAndKeep(node, ['tests/architecture/check.mjs']) },
  size: {
    title: 'size budget',
    run: () => {
      buildAll();
      return runAndKeep(node, ['tests/size.mjs']);
    },
  },
  lint: {
    title: 'format, lint, types and phrases',
    run: () => {
      buildAll(); // types of the built package, and tables that the core generates
      const commands = [
        [bin('biome'), ['check', '.']],
        ...['tsconfig.json', 'web/cli/tsconfig.json', 'web/demo/tsconfig.json'].map((project) => {
          return [bin('tsc'), ['-p', project, '--noEmit']];
        }),
      ];
      commands.push([node, ['tests/texts/check.mjs']]);
      const format = clangFormat();
      if (format) commands.push([format, ['--dry-run', '--Werror', ...cppFiles()]]);
      else say('clang-format-14 is not installed: the layout of the C++ files is not checked');
      return inOrder(...commands);
    },
  },
};

/** Sections that run only when they are named. */
const namedSections = {
  'wasm-checked': {
    title: 'C++ tests in WebAssembly, every access to memory checked',
    run: () => ctest('wasm-checked', 'wasm'),
  },
};

async function runSection(name) {
  const { title, run } = { ...sections, ...namedSections }[name];
  process.stdout.write(`\n== ${name}: ${title}\n`);
  const start = performance.now();
  let result;
  try {
    result = await run();
  } catch (error) {
    process.stdout.write(`${error.setUp || error.exitCode ? error.message : error.stack}\n`);
    result = { exitCode: error.exitCode ?? 1 };
  }
  const seconds = (performance.now() - start) / 1000;
  const { exitCode } = result;
  let { passed = exitCode === 0 ? 1 : 0, failed = 0 } = result;
  if (exitCode !== 0) failed = Math.max(failed, 1);
  process.stdout.write(
    `== ${name}: ${exitCode === 0 ? 'passed' : `FAILED (exit code ${exitCode})`} in ${seconds.toFixed(1)} s\n`,
  );
  return { name, exitCode, seconds, passed, failed };
}

main(async (args) => {
  const names = args.filter((arg) => arg !== '--without');
  const usual = Object.keys(sections);
  const known = [...usual, ...Object.keys(namedSections)];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw Object.assign(needs(`no section ${unknown.join(', ')}; there are ${known.join(', ')}`), { exitCode: 2 });
  setUp();
  const chosen = names.length && args[0] !== '--without' ? names : usual.filter((name) => !names.includes(name));
  const results = [];
  for (const name of chosen) results.push(await runSection(name));

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
