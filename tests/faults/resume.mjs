// Folder runs of the command line with --resume, killed again and again until one comes to its end: at random times, and
// in turn with that when some more files are finished. The last finds what the ones before it finished, and its files
// are those of an undisturbed run.
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { contentsOf, random, writeShards } from './model.mjs';

const shards = 16;
const signals = ['SIGKILL', 'SIGINT', 'SIGTERM'];
/** Of one output; then the run is left alone. */
const mostKills = 6;

const isPartial = (name) => name.endsWith('.partial');

/** Files that the journal of the partial output in `place` calls finished. */
function finishedIn(place) {
  const partial = readdirSync(place).find(isPartial);
  if (partial === undefined) return 0;
  try {
    return JSON.parse(readFileSync(join(place, partial, 'wasmquant-run.json'), 'utf8')).files.length;
  } catch {
    return 0; // not begun
  }
}

/** `isTime(milliseconds since the start)` says when `signal` is sent. */
function quantize(model, out, args, signal, isTime) {
  return new Promise((resolve) => {
    const start = performance.now();
    const command = [join(root, 'dist/cli.js'), 'quantize', model, '-o', out, '-p', 'int4_wo_128', '-t', '2', '--json'];
    const child = spawn(process.execPath, [...command, '--quiet', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    const text = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'])
      child[name].setEncoding('utf8').on('data', (part) => {
        text[name] += part;
      });
    const watch = () => {
      if (!child.killed && isTime(performance.now() - start)) child.kill(signal);
    };
    const timer = signal && setInterval(watch, 2);
    child.on('close', (code) => {
      clearInterval(timer);
      resolve({ code, ...text, milliseconds: performance.now() - start });
    });
  });
}

export async function resume(folder, count, fault) {
  const model = writeShards(join(folder, 'model'), shards);
  const input = contentsOf(model);
  const whole = await quantize(model, join(folder, 'whole'), [], null);
  if (whole.code !== 0) throw new Error(`the undisturbed run failed: ${whole.stderr}`);
  const finished = contentsOf(join(folder, 'whole'));
  const next = random(count + 3);
  let [kills, resumed, taken] = [0, 0, 0];
  for (let run = 0; kills < count; ++run) {
    const place = join(folder, `place-${run}`);
    mkdirSync(place);
    const out = run % 2 === 0 ? join(place, 'out') : place;
    const partials = () => readdirSync(place).filter(isPartial);
    for (let kill = 0, code = -1; code !== 0; ++kill) {
      const signal = kill < mostKills ? signals[Math.floor(next() * signals.length)] : null;
      const [delayMs, files] = [next() * whole.milliseconds, finishedIn(place) + 1 + Math.floor(next() * 3)];
      const isTime = kill % 2 === 0 ? () => finishedIn(place) >= files : (milliseconds) => milliseconds >= delayMs;
      const result = await quantize(model, out, ['--resume'], signal, isTime);
      code = result.code;
      // Killed between its last step and its end.
      if (code === 1 && /"target-exists"/.test(result.stdout) && contentsOf(out) === finished) break;
      if (code !== 0) {
        kills += 1;
        const left = partials();
        fault(
          signal !== null && left.length <= 1,
          `run ${run} ended with ${code}, left ${left}: ${result.stdout} ${result.stderr}`,
        );
        if (signal === null) break;
        continue;
      }
      const { resumedFiles } = JSON.parse(result.stdout);
      if (resumedFiles > 0) resumed += 1;
      taken += resumedFiles;
    }
    const isSame = contentsOf(out) === finished && partials().length === 0 && contentsOf(model) === input;
    fault(isSame, `run ${run}: after its kills the output is another`);
    rmSync(place, { recursive: true, force: true });
  }
  fault(resumed > 0, 'no run found a finished file of the one before it');
  return `${kills} kills; ${resumed} runs went on with ${taken} finished files in all`;
}
