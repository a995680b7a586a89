// Programs that our files are proved with, run from .peers (peers.sh).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const options = { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 };

/** One of llama.cpp's tools, of the folder WASMQUANT_LLAMA_BIN if that is set: `output` is both streams. */
export function llama(program, ...args) {
  const folder = process.env.WASMQUANT_LLAMA_BIN;
  const command = folder ? [join(folder, program)] : [peers, 'run', program];
  const { status, stdout, stderr } = spawnSync(command[0], [...command.slice(1), ...args], options);
  return { ok: status === 0, stdout, output: `${stdout}${stderr}` };
}

/**
 * What llama-completion makes of a file and a prompt. It ends without waiting for the thread that prints, so that on a busy
 * machine a part of the text is lost, or all of it, with exit code 0: it is asked again until `isWhole(stdout)`, a few times.
 */
export function completion(file, prompt, flags, isWhole) {
  const args = ['-m', file, '-p', prompt, '--temp', '0', '-no-cnv', '-t', '1', '--no-warmup', ...flags];
  let last = llama('llama-completion', ...args);
  for (let asks = 1; last.ok && !isWhole(last.stdout) && asks < 20; ++asks) last = llama('llama-completion', ...args);
  return last;
}

/** A Python script of this folder that prints one JSON line a case. Throws when it gives other than `cases` of them. */
export function python(script, args, cases) {
  const { status, stdout } = spawnSync(peers, ['run', 'python3', `tests/interop/${script}`, ...args], {
    ...options,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const outcomes = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  if (status === 0 && outcomes.length === cases) return outcomes;
  throw new Error(`${script} ended with exit code ${status} after ${outcomes.length} of ${cases} cases`);
}
