// The command line killed at random times: SIGINT, SIGTERM, SIGKILL in turn. After each run the input is as it was, the
// output is the earlier one or the whole new one, and nothing of that run stands beside it, but for SIGKILL its partial
// output, which the next run removes. In the end a run gives the very bytes of an undisturbed one.
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../setup/command.mjs';
import { contentsOf, random, writeModel } from './model.mjs';

const isPartial = (name) => /\.partial($|\/)/.test(name);
const exits = { SIGINT: 130, SIGTERM: 143, SIGKILL: null };

function quantize(model, out, signal, delayMs) {
  return new Promise((resolve) => {
    const args = [
      join(root, 'dist/cli.js'),
      'quantize',
      model,
      '-o',
      out,
      '-p',
      'int4_wo_128',
      '-t',
      '2',
      '--quiet',
      '--force',
    ];
    const start = performance.now();
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text;
    });
    const timer = signal ? setTimeout(() => child.kill(signal), delayMs) : null;
    child.on('exit', (code, killed) => {
      if (timer) clearTimeout(timer);
      resolve({ pid: child.pid, code, killed, stderr, milliseconds: performance.now() - start });
    });
  });
}

/** Runs `count` times; `fault(ok, what)` for each. */
export async function signals(folder, count, fault) {
  const model = writeModel(join(folder, 'model'));
  const input = contentsOf(model);
  const place = join(folder, 'place');
  mkdirSync(place);
  const [out, fresh] = [join(place, 'out'), join(place, 'fresh')];
  const whole = await quantize(model, out, null, 0);
  if (whole.code !== 0) throw new Error(`the undisturbed run failed: ${whole.stderr}`);
  const finished = contentsOf(out);
  writeFileSync(join(out, 'earlier.txt'), 'kept\n');
  const earlier = contentsOf(out);
  const next = random(count);
  const names = Object.keys(exits);
  let caught = 0;
  const partials = () => readdirSync(place, { recursive: true }).filter((name) => name.endsWith('.partial'));
  for (let run = 0; run < count; ++run) {
    const signal = names[run % names.length];
    // Into the existing folder, and every other time into one that is not there yet.
    const target = run % 2 === 0 ? out : fresh;
    const { pid, code, killed, stderr } = await quantize(model, target, signal, next() * whole.milliseconds * 1.1);
    if (code !== 0) caught += 1;
    const problems = [];
    if (contentsOf(model) !== input) problems.push('the input changed');
    const own = partials().filter((name) => name.includes(`-${pid}-`));
    if (signal !== 'SIGKILL' && own.length > 0) problems.push(`left ${own.join(', ')}`);
    const places = partials().map((name) => dirname(name));
    if (new Set(places).size < places.length)
      problems.push(`several partial outputs in one place: ${partials().join(', ')}`);
    if (code !== 0 && killed !== signal && code !== exits[signal]) problems.push(`exit code ${code}: ${stderr}`);
    const found = contentsOf(fresh);
    if (found !== null && found !== finished) problems.push('a new folder is there and not whole');
    if (contentsOf(out, null, isPartial) !== earlier) problems.push('the earlier output changed');
    fault(problems.length === 0, `${signal}, run ${run}: ${problems.join('; ')}`);
    rmSync(fresh, { recursive: true, force: true });
  }
  await quantize(model, out, null, 0);
  await quantize(model, fresh, null, 0);
  const left = partials();
  fault(left.length === 0, `the next run left ${left.join(', ')}`);
  fault(contentsOf(out) === earlier && contentsOf(fresh) === finished, 'the last runs gave other bytes');
  fault(caught >= count / 3, `only ${caught} of ${count} runs were caught before their end`);
  return `${caught} of ${count} runs were ended by their signal`;
}
