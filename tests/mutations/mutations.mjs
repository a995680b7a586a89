// npm run test:mutations [-- NAME...]: whether the tests see. Builds each fault of faults.mjs, a small patch of a source, into a copy of the checkout, and
// runs what has to catch it: random cases of npm run test:seams until one is wrong, or a test file. Prints the fault, what caught it, and how.
//   --seed N: the first case (1)   --cases N: how many are judged at most (60)   --list: names only
// Exit code 1 when a fault is not caught, when a patch does not fit its source, or when something fails without a fault. The copy stays in
// build/mutations, so that a later run compiles only what a fault touches.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { main, root } from '../setup/command.mjs';
import { setUp } from '../setup/setup.mjs';
import { faults } from './faults.mjs';

const tree = join(root, 'build/mutations');
const builder = 'tests/setup/build.mjs';
const longestRun = 15 * 60_000;

/** The text with `put` in place of `find`. Throws unless it has `find` once. */
function patched(text, file, find, put) {
  const times = text.split(find).length - 1;
  if (times !== 1) throw new Error(`the patch does not fit: ${file} has ${times} times, not once: ${find}`);
  return text.replace(find, () => put);
}

/** Makes a file of the copy that of the checkout. One that was patched gets a new time, so that it is compiled again. */
function restore(name) {
  const [from, to] = [join(root, name), join(tree, name)];
  const isNew = !existsSync(to);
  if (!isNew && readFileSync(from).equals(readFileSync(to))) return;
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  const { atime, mtime } = statSync(from);
  if (isNew) utimesSync(to, atime, mtime);
}

/** The checkout's files with its packages and tools. What is built there is the package, without the page. */
function prepareCopy() {
  const { stdout } = spawnSync('git', ['ls-files', '-z', '-c', '-o', '--exclude-standard'], { cwd: root });
  const isFile = (name) => existsSync(join(root, name)) && lstatSync(join(root, name)).isFile();
  const names = new Set(String(stdout).split('\0').filter(Boolean).filter(isFile));
  for (const folder of ['src', 'bindings', 'web', 'tests'].filter((name) => existsSync(join(tree, name))))
    for (const entry of readdirSync(join(tree, folder), { recursive: true, withFileTypes: true })) {
      const name = join(entry.parentPath, entry.name).slice(tree.length + 1);
      if (entry.isFile() && !names.has(name) && !name.includes('/generated/')) rmSync(join(tree, name));
    }
  for (const name of names) if (name !== builder) restore(name);
  for (const name of ['node_modules', '.peers-python']) {
    mkdirSync(join(root, name), { recursive: true });
    if (!existsSync(join(tree, name))) symlinkSync(join(root, name), join(tree, name));
  }
  const text = readFileSync(join(root, builder), 'utf8');
  writeFileSync(join(tree, builder), patched(text, builder, '  buildPage();\n  buildNotices();\n', ''));
  writeFileSync(join(tree, 'tests/setup/setup.mjs'), 'export const setUp = () => process.env;\n');
}

/** Runs a script of the copy: {isOk, output}. */
function runInCopy(args, env) {
  const options = { cwd: tree, env, encoding: 'utf8', timeout: longestRun, maxBuffer: 1 << 28 };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, options);
  return { isOk: status === 0, output: `${stdout}${stderr}` };
}

/** What catches faults, in the copy. */
class Catcher {
  #env;
  #seed;
  #cases;

  constructor(env, { seed, cases }) {
    [this.#env, this.#seed, this.#cases] = [env, seed, cases];
  }

  build() {
    const { isOk, output } = runInCopy([builder], this.#env);
    if (!isOk) throw new Error(`the copy cannot be built:\n${output.slice(-3000)}`);
  }

  /** Null if nothing is wrong, else the first thing that is. */
  problem(by) {
    const options = { ...this.#env, WASMQUANT_BUILT: '1' };
    const args = by === 'seams' ? ['tests/peers/seams/seams.mjs', this.#cases, '--bail', '--seed', this.#seed] : [by];
    const { isOk, output } = runInCopy(by.endsWith('.test.mjs') ? ['--test', by] : args, options);
    if (isOk) return null;
    const text = /^(\d+ WRONG: .*|not ok .*|FAILED .*)$/m.exec(output)?.[0];
    return text ?? `ends with an error: ${output.trim().split('\n').at(-1) ?? ''}`;
  }
}

/** Builds one fault in and asks what has to catch it. True if it does. */
function tryFault(name, catcher) {
  const [file, find, put, by] = faults[name];
  const path = join(tree, file);
  writeFileSync(path, patched(readFileSync(join(root, file), 'utf8'), file, find, put));
  try {
    catcher.build();
    const problem = catcher.problem(by);
    const what = by === 'seams' ? by : by.replace(/^tests\/(node\/)?/, '');
    process.stdout.write(
      `${name.padEnd(32)} ${(problem ? what : 'NOT CAUGHT').padEnd(40)} ${(problem ?? `by ${what}`).slice(0, 160)}\n`,
    );
    return problem !== null;
  } finally {
    restore(file);
  }
}

main((args) => {
  const { values, positionals } = parseArgs({
    args,
    options: {
      seed: { type: 'string', default: '1' },
      cases: { type: 'string', default: '60' },
      list: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  const unknown = positionals.find((name) => !(name in faults));
  if (unknown) throw new Error(`no fault is called ${unknown}; --list prints all names`);
  const names = positionals.length > 0 ? positionals : Object.keys(faults);
  if (values.list) return void process.stdout.write(`${names.join('\n')}\n`);
  for (const name of names) {
    const [file, find, put] = faults[name];
    patched(readFileSync(join(root, file), 'utf8'), file, find, put);
  }
  const catcher = new Catcher(setUp(), values);
  prepareCopy();
  catcher.build();
  for (const by of new Set(names.map((name) => faults[name][3]))) {
    const problem = catcher.problem(by);
    if (problem) throw new Error(`without a fault, ${by} finds: ${problem}`);
  }
  const caught = names.filter((name) => tryFault(name, catcher)).length;
  process.stdout.write(`${caught} of ${names.length} caught\n`);
  return caught === names.length ? 0 : 1;
});
