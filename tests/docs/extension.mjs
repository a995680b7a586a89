// The guide "Add a dtype ...", followed to the letter: its snippets go into a copy of the tree, each where the line before it
// says, and the copy is built and tested natively. Beside the tests that go through all rows of the tables,
// extension_test.cpp says what has to be there. All sections share one copy and one build; what the guide does not touch
// comes from ccache, where there is one.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from '../setup/command.mjs';
import { setUp } from '../setup/setup.mjs';
import { fencesOf } from './fences.mjs';

const guide = 'web/docs/extend.md';
/** What CMakeLists.txt wants to see, without the tests. */
const copied = ['CMakeLists.txt', 'cmake', 'src', 'bindings', 'tests/fuzz', 'tests/interop'];
/** Tests that go through all rows of the tables. */
const tests = ['main.cpp', 'numeric/minifloat_test.cpp', 'observers/sharing_test.cpp', 'config/write_test.cpp'];

function run(program, args, options) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    ...options,
  });
  if (error) throw error;
  assert.equal(status, 0, `${program} ended with exit code ${status}\n${stdout.slice(-8000)}${stderr.slice(-8000)}`);
  return stdout;
}

/** Puts a snippet where the line before it says; returns the file. */
function apply({ note, code, line }, folder) {
  const [, created] = /^Saved as `([^`]+)`:$/.exec(note) ?? [];
  if (created) {
    assert.ok(/^src\/\w+(\/\w+)?\/\w+\.cpp$/.test(created), `${guide}:${line}: ${created} is no source file`);
    mkdirSync(dirname(join(folder, created)), { recursive: true });
    writeFileSync(join(folder, created), `${code}\n`, { flag: 'wx' });
    return created;
  }
  const [, mark, file] = /^Behind the last `([^`]+)` of `([^`]+)`:$/.exec(note) ?? [];
  assert.ok(file, `${guide}:${line}: the line before the snippet does not say where it goes: ${note}`);
  const before = readFileSync(join(folder, file), 'utf8');
  const at = before.lastIndexOf(mark);
  assert.ok(at >= 0, `${guide}:${line}: ${file} has no ${mark}`);
  assert.ok(!before.includes(code), `${guide}:${line}: ${file} has this already`);
  const end = before.indexOf('\n', at) + 1;
  writeFileSync(join(folder, file), `${before.slice(0, end)}${code}\n${before.slice(end)}`);
  return file;
}

function copyTree(folder) {
  for (const path of copied) cpSync(join(root, path), join(folder, path), { recursive: true });
  const isWanted = (path) =>
    statSync(path).isDirectory() || path.endsWith('.h') || tests.some((name) => path.endsWith(name));
  cpSync(join(root, 'tests/native'), join(folder, 'tests/native'), { recursive: true, filter: isWanted });
  cpSync(join(root, 'tests/docs/extension_test.cpp'), join(folder, 'tests/native/extension_test.cpp'));
  symlinkSync(join(root, 'tests/files'), join(folder, 'tests/files'));
}

/** Throws when the guide is not enough. Returns the files that its snippets went into. */
export function followGuide() {
  const env = setUp();
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-extension-'));
  try {
    copyTree(folder);
    const fences = fencesOf(readFileSync(join(root, guide), 'utf8'));
    const files = fences.map((fence) => apply(fence, folder));
    const build = join(folder, 'build');
    run('cmake', ['-S', folder, '-B', build, '-DCMAKE_BUILD_TYPE=None', '-DCMAKE_CXX_FLAGS=-O0'], { env });
    const jobs = String(Math.min(availableParallelism(), 4));
    run('cmake', ['--build', build, '--target', 'wasmquant_tests', '--parallel', jobs], { env });
    assert.match(run(join(build, 'wasmquant_tests'), [], { env, cwd: folder }), / 0 failed/);
    return files;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
