// npm run coverage: which lines of src the C++ tests run, by gcovr. Exit code 1 below 90 %.
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { buildNative } from './build.mjs';
import { findProgram, installPackages, main, needs, root, run } from './command.mjs';

main(() => {
  if (!findProgram('gcovr') && !installPackages('gcovr'))
    throw needs('coverage needs gcovr: install it and run this again');
  const folder = buildNative('coverage', 'wasmquant_tests');
  const jobs = String(availableParallelism());
  run('find', [folder, '-name', '*.gcda', '-delete']);
  run('ctest', ['--test-dir', folder, '--output-on-failure', '--parallel', jobs]);
  const report = [
    '--json-summary',
    join(folder, 'coverage.json'),
    '--txt',
    '--print-summary',
    '--fail-under-line',
    '90',
  ];
  run('gcovr', ['--root', root, '--filter', 'src/', '--object-directory', folder, '-j', jobs, ...report, folder]);
});
