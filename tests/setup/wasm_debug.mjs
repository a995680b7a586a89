// npm run test:wasm-debug: the C++ tests in WebAssembly with SAFE_HEAP and ASSERTIONS=2, which stop at every access that is
// unaligned, beyond the memory or at address 0, without what takes minutes there: tests that go through every code or
// every shape, or calibrate a whole model, which the fast build runs.
import { join } from 'node:path';
import { buildNative } from './build.mjs';
import { main } from './command.mjs';
import { runDoctest } from './doctest.mjs';

const slow = ['*every length*', '*any shape*', '*tiny-llama*', '*lose less than*', '*mends 8 bit*'];

main(async () => {
  const folder = buildNative('wasm-debug', 'wasmquant_tests');
  const filters = [`--test-case-exclude=${slow.join()}`];
  const command = [process.execPath, join(folder, 'wasmquant_tests.cjs')];
  return (await runDoctest({ title: 'SAFE_HEAP', command, filters })).exitCode;
});
