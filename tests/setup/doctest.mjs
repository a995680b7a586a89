// Runs doctest programs in parts, as many at a time as there are cores: a part is a stretch of the test cases in the order
// that doctest has them in.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { needs, root } from './command.mjs';

/** Of each program: enough for the cores to end at about the same time, whichever cases are slow. */
const partsOfEach = 16;

/** How many cases a program has with these filters. */
function countCases(command, filters, env) {
  const text = execFileSync(command[0], [...command.slice(1), ...filters, '--count', '--no-intro=true'], {
    encoding: 'utf8',
    env,
  });
  const cases = Number(/filters: (\d+)/.exec(text)?.[1]);
  if (!(cases > 0)) throw needs(`the test cases of ${command.join(' ')} cannot be counted: ${text}`);
  return cases;
}

/** Runs one part; its output is shown when it fails. doctest's closing lines count cases outside the part as passed. */
async function runPart(command, args, env) {
  const child = spawn(command[0], [...command.slice(1), ...args], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const [status] = await once(child, 'close');
  const failed = Number(/\[doctest\] test cases:.*\| *(\d+) failed/.exec(output)?.[1] ?? 0);
  const assertions = Number(/\[doctest\] assertions: *(\d+)/.exec(output)?.[1] ?? 0);
  const isWhole = output.includes('[doctest] Status: SUCCESS!');
  if (status !== 0 || !isWhole) process.stdout.write(`${command.join(' ')} ${args.join(' ')}\n${output}\n`);
  return { assertions, failed: status === 0 && isWhole ? failed : Math.max(failed, 1) };
}

/**
 * Runs programs: each `{ title, command, filters, env }`, `command` an array, `filters` doctest's options. A line for
 * each at its end. Resolves to `{ exitCode, passed, failed }`.
 */
export async function runDoctest(...programs) {
  const waiting = [];
  const total = { exitCode: 0, passed: 0, failed: 0 };
  for (const { title, command, filters = [], env = process.env } of programs) {
    const cases = countCases(command, filters, env);
    const parts = Math.min(partsOfEach, cases); // to doctest an empty stretch is all there is
    const sum = { assertions: 0, failed: 0, left: parts, seconds: 0 };
    for (let part = 0; part < parts; ++part) {
      const range = [
        `--first=${Math.floor((part * cases) / parts) + 1}`,
        `--last=${Math.floor(((part + 1) * cases) / parts)}`,
      ];
      waiting.push(async () => {
        const start = performance.now();
        const counts = await runPart(command, [...filters, ...range, '--no-intro=true'], env);
        sum.seconds += (performance.now() - start) / 1000;
        sum.assertions += counts.assertions;
        sum.failed += counts.failed;
        if (--sum.left > 0) return;
        const what = `${cases} cases, ${sum.assertions} assertions, ${sum.failed} cases failed`;
        process.stdout.write(`${title}: ${what}; ${sum.seconds.toFixed(0)} s of one core\n`);
        total.passed += cases - sum.failed;
        total.failed += sum.failed;
      });
    }
  }
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await next();
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  total.exitCode = total.failed > 0 ? 1 : 0;
  return total;
}
