// npm run conformance: every golden case through the WebAssembly build.
//   -- --golden DIR   folder of manifests, default tests/golden      -- --json   stdout is one JSON document
// A relative DIR is seen from the folder npm was called in. Exit code 1 when a case fails.
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildNative } from '../setup/build.mjs';
import { main, needs, root } from '../setup/command.mjs';

function options(args) {
  try {
    return parseArgs({ args, options: { golden: { type: 'string' }, json: { type: 'boolean' } } }).values;
  } catch (error) {
    throw Object.assign(needs(`${error.message}. Usage: npm run conformance -- [--golden DIR] [--json]`), {
      exitCode: 2,
    });
  }
}

main((args) => {
  const { golden, json } = options(args);
  const folder = golden ? resolve(process.env.INIT_CWD ?? process.cwd(), golden) : join(root, 'tests/golden');
  const program = join(buildNative('wasm', 'wasmquant_conformance'), 'wasmquant_conformance.cjs');
  const { status, error } = spawnSync(process.execPath, [program, '--golden', folder, ...(json ? ['--json'] : [])], {
    cwd: root,
    stdio: 'inherit',
  });
  if (error) throw error;
  return status ?? 1;
});
