// npm run coverage: which lines of src the C++ tests run, by gcov. One line for each room, the files with the most lines
// that no test runs, and the total; exit code 1 below 90 %.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { runWorkflow } from '../setup/build.mjs';
import { findProgram, main, needs, root, run } from '../setup/command.mjs';
import { filesBelow } from '../setup/source_files.mjs';

const least = 0.9;
const filesShown = 10;

/** Runs by line of every file of src, summed over the objects that have code of it (templates, instruction sets). */
function countLines(folder) {
  const gcov = findProgram('gcov');
  if (!gcov) throw needs('coverage needs gcov, which comes with gcc');
  const notes = filesBelow(join('build', 'debug'), /\.gcda$/);
  if (notes.length === 0) throw needs('the tests wrote no coverage data');
  const lines = new Map();
  for (const note of notes) {
    const text = execFileSync(gcov, ['--json-format', '--stdout', join(root, note)], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for (const { files } of text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)))
      for (const { file, lines: counted } of files) {
        const name = /(?:^|\/)(src\/(?:[a-z_]+\/)+[a-z0-9_]+\.(?:cpp|h))$/.exec(file)?.[1];
        if (!name || file.includes('.toolchain')) continue;
        const own = lines.get(name) ?? new Map();
        lines.set(name, own);
        for (const { line_number: line, count } of counted) own.set(line, (own.get(line) ?? 0) + count);
      }
  }
  return lines;
}

main(async () => {
  for (const note of filesBelow(join('build', 'debug'), /\.gcda$/)) run('rm', [note]);
  // What each process counted is added up in the files of its objects, under a lock.
  const { exitCode } = await runWorkflow('coverage', 'debug');
  if (exitCode !== 0) return exitCode;
  const rooms = new Map();
  const files = [];
  for (const [name, lines] of countLines(join(root, 'build/debug'))) {
    const covered = [...lines.values()].filter((count) => count > 0).length;
    files.push({ name, missed: lines.size - covered, lines: lines.size });
    const room = rooms.get(name.split('/')[1]) ?? { covered: 0, lines: 0 };
    rooms.set(name.split('/')[1], { covered: room.covered + covered, lines: room.lines + lines.size });
  }
  const row = (name, { covered, lines }) =>
    process.stdout.write(
      `${name.padEnd(12)} ${String(covered).padStart(6)} of ${String(lines).padStart(6)} lines, ${((100 * covered) / lines).toFixed(1)} %\n`,
    );
  for (const [name, counts] of [...rooms].sort()) row(name, counts);
  const total = [...rooms.values()].reduce(
    (sum, { covered, lines }) => ({ covered: sum.covered + covered, lines: sum.lines + lines }),
    { covered: 0, lines: 0 },
  );
  row('src', total);
  for (const { name, missed, lines } of files.sort((a, b) => b.missed - a.missed).slice(0, filesShown))
    process.stdout.write(`  ${String(missed).padStart(4)} of ${lines} lines never run: ${name}\n`);
  return total.covered / total.lines >= least ? 0 : 1;
});
