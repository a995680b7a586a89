// The guide "Add a dtype ...", followed to the letter where a row is all it takes: the row of its snippet goes into a copy of
// the table of dtypes, and the exhaustive test over all codes is compiled there and run. Natively, a few seconds.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { setUp } from '../setup/setup.mjs';

const guide = 'web/docs/extend.md';
const table = 'src/numeric/dtypes.def';

/** The row of the guide's first C++ snippet, and the dtype it names. */
function rowOfGuide() {
  const [, row] = /```cpp\n(WASMQUANT_FLOAT\(.*\))\n```/.exec(readFileSync(join(root, guide), 'utf8')) ?? [];
  assert.ok(row, `${guide} shows no row of a float`);
  const [id, bits, exponent, mantissa] = row.slice(row.indexOf('(') + 1, -1).split(', ');
  return { row, id, bits, exponent, mantissa };
}

/** Says that the new dtype is among those that the copied test goes through, with the numbers of its row. */
const check = ({ id, bits, exponent, mantissa }) => `#include <doctest/doctest.h>

#include "numeric/minifloat.h"

TEST_CASE("the dtype of the guide") {
  const auto dtype = wasmquant::dtype_named("${id}");
  REQUIRE(dtype.has_value());
  CHECK(wasmquant::info_of(*dtype).bits == ${bits});
  const wasmquant::FloatFormat format = wasmquant::float_format_of(*dtype);
  CHECK(format.exponent_bits == ${exponent});
  CHECK(format.mantissa_bits == ${mantissa});
}
`;

function run(program, args, options) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', ...options });
  if (error) throw error;
  assert.equal(status, 0, `${program} ended with exit code ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** Throws when the guide's row is not enough. */
export function followGuide() {
  const env = setUp();
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-extension-'));
  try {
    for (const room of ['core', 'numeric'])
      cpSync(join(root, 'src', room), join(folder, 'src', room), { recursive: true });
    const added = rowOfGuide();
    const before = readFileSync(join(root, table), 'utf8');
    const last = before.lastIndexOf('\nWASMQUANT_FLOAT(');
    assert.ok(last > 0 && !before.includes(`(${added.id},`), `${table} has no floats, or has ${added.id} already`);
    const end = before.indexOf('\n', last + 1);
    writeFileSync(join(folder, table), `${before.slice(0, end)}\n${added.row}${before.slice(end)}`);
    writeFileSync(join(folder, 'guide_test.cpp'), check(added));
    const tests = ['main.cpp', 'numeric/minifloat_test.cpp'].map((file) => join(root, 'tests/native', file));
    const include = ['-I', join(folder, 'src'), '-isystem', env.WASMQUANT_INCLUDE ?? '/usr/include'];
    const flags = ['-std=c++20', '-O1', '-Wall', '-Werror', ...include];
    const program = join(folder, 'tests');
    run('g++', [...flags, '-o', program, ...tests, join(folder, 'guide_test.cpp')], { env });
    assert.match(run(program, [], {}), /0 failed/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
