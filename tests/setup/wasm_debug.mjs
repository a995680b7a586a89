// npm run test:wasm-debug: the C++ tests in WebAssembly with SAFE_HEAP and ASSERTIONS=2, which stop at every access that is
// unaligned, beyond the memory or at address 0, without what takes minutes there: tests that go through every code or
// every shape, or calibrate a whole model, which the fast build runs.
import { join } from 'node:path';
import { buildNative } from './build.mjs';
import { main, run } from './command.mjs';

const slow = ['*every length*', '*any shape*', '*tiny-llama*', '*lose less than*', '*mends 8 bit*'];

main(() => {
  const folder = buildNative('wasm-debug', 'wasmquant_tests');
  run(process.execPath, [join(folder, 'wasmquant_tests.cjs'), `--test-case-exclude=${slow.join()}`, '--minimal=true']);
});
