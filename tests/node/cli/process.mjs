// Runs dist/cli.js as a user does: its own process, its own pipes. Also model files for it, in a folder that goes away.
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, truncateSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (relative) => fileURLToPath(new URL(relative, import.meta.url));

export const cliPath = here('../../../dist/cli.js');
/** 39 BF16 tensors in three shards, with config.json and an index. */
export const tinyLlama = here('../../files/tiny-llama/bf16');
/** The same in one F32 file. */
export const tinyLlamaFile = here('../../files/tiny-llama/model.safetensors');

/** A folder of this test, removed at its end. */
export function scratch(t) {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-cli-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts the command. `done` resolves to `{ code, signal, stdout, stderr }`. */
export function start(args, { input, keepStdin = false, env = {}, cwd, command = [process.execPath, cliPath] } = {}) {
  const { NO_COLOR, FORCE_COLOR, WASMQUANT_DEBUG, ...inherited } = process.env;
  const child = spawn(command[0], [...command.slice(1), ...args], { cwd, env: { ...inherited, ...env } });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (chunk) => {
      text[name] += chunk;
    });
  }
  child.stdin.on('error', () => {}); // a command that never reads stdin closes it
  if (!keepStdin) child.stdin.end(input ?? '');
  const done = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, ...text }));
  });
  return { child, done };
}

/** Runs the command to its end. */
export const cli = (args, options) => start(args, options).done;

/** Runs with `--json` and parses all of stdout, so that anything beside the one document fails. */
export async function cliJson(args, options) {
  const result = await cli([...args, '--json'], options);
  return { ...result, document: JSON.parse(result.stdout) };
}

/** Writes a safetensors file of zeros (sparse on disk). `tensors`: name → shape, all F32. */
export function writeZeros(path, tensors) {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, shape]) => {
    const begin = end;
    end += 4 * shape.reduce((count, dimension) => count * dimension, 1);
    return [name, { dtype: 'F32', shape, data_offsets: [begin, end] }];
  });
  const json = JSON.stringify(Object.fromEntries(entries));
  const header = Buffer.from(json.padEnd(json.length + ((8 - (Buffer.byteLength(json) % 8)) % 8)), 'utf8');
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const file = openSync(path, 'w');
  writeSync(file, length);
  writeSync(file, header);
  closeSync(file);
  truncateSync(path, 8 + header.length + end);
  return path;
}
