// One run of file_run.mjs in a child process, so that its peak memory is its own; the output is removed afterwards.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** `single`: into one file instead of a folder. Returns what file_run.mjs prints. */
export function quantize(input, folder, { threads, memory, single = false, preset = 'int4_wo_128' }) {
  const output = join(folder, 'out');
  mkdirSync(output);
  const target = join(output, single ? 'model.safetensors' : 'model');
  const script = join(import.meta.dirname, 'file_run.mjs');
  const args = [script, input, target, preset, String(threads), String(memory ?? '')];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  rmSync(output, { recursive: true });
  if (status !== 0) throw new Error(`file_run.mjs failed with exit code ${status}: ${stderr}`);
  return JSON.parse(stdout);
}
