// Other programs that quantize or copy the weights of the file bench, where this machine has them: llama-quantize and a Python
// with onnxruntime, either their own or those of tests/interop/peers.sh.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const hasPeers = existsSync(join(root, '.peers/.ready'));

/** Wall and processor milliseconds of a program, and what it printed. Throws if it does not end with `expected`. */
export function timed(command, args, expected = 0) {
  const timing = 'TIMEFORMAT="wasmquant-time %R %U %S"; time "$@" 2>&1';
  const all = ['-c', timing, 'bash', command, ...args];
  const { status, stdout, stderr, error } = spawnSync('bash', all, { cwd: root, encoding: 'utf8' });
  if (error) throw error;
  if (status !== expected) throw new Error(`${command} failed with exit code ${status}: ${stdout.slice(-1000)}`);
  const [, wall, user, system] = /^wasmquant-time ([\d.]+) ([\d.]+) ([\d.]+)$/m.exec(stderr);
  const cpuMilliseconds = 1000 * (Number(user) + Number(system));
  return { milliseconds: 1000 * Number(wall), cpuMilliseconds, output: stdout };
}

/**
 * `(input, output, threads) => { milliseconds, cpuMilliseconds }` of Q4_0, less what entering the peers' root takes; null where
 * there is none.
 */
export function llamaQuantize(own) {
  if (!own && !hasPeers) return null;
  const command = own ? [own] : [peers, 'run', 'llama-quantize'];
  return (input, output, threads) => {
    const entering = own ? { milliseconds: 0, cpuMilliseconds: 0 } : timed(peers, ['run', 'true']);
    const args = [...command.slice(1), '--pure', input, output, 'Q4_0', String(threads)];
    const whole = timed(command[0], args);
    rmSync(output);
    return {
      milliseconds: whole.milliseconds - entering.milliseconds,
      cpuMilliseconds: whole.cpuMilliseconds - entering.cpuMilliseconds,
    };
  };
}

/** GB/s of float32 input of onnxruntime's MatMulNBits quantizer, int4 in blocks of 128; null where it cannot be imported. */
export function onnxruntimeRate() {
  const script = 'tests/bench/onnxruntime_matmul_nbits.py';
  const pythons = [['python3'], ...(hasPeers ? [[peers, 'run', 'python3']] : [])];
  for (const [command, ...first] of pythons) {
    const { status, stdout } = spawnSync(command, [...first, script], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    if (status === 0) return JSON.parse(stdout).gbps;
  }
  return null;
}

/** Milliseconds of a plain copy of a file in the page cache. */
export function copy(input, output) {
  const start = performance.now();
  copyFileSync(input, output);
  const milliseconds = performance.now() - start;
  rmSync(output);
  return milliseconds;
}
