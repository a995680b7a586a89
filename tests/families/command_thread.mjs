// `wasmquant` in a thread of the harness, with `argv`: what it prints to 1 and 2 is posted as `{ descriptor, text }`.
// A process for each of a thousand models would load the command, and compile the module, as many times.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import tty from 'node:tty';
import { parentPort } from 'node:worker_threads';
import { root } from '../setup/command.mjs';

const write = fs.writeSync;
fs.writeSync = (descriptor, bytes, ...where) => {
  if (descriptor !== 1 && descriptor !== 2) return write(descriptor, bytes, ...where);
  parentPort.postMessage({ descriptor, text: bytes.toString('utf8') });
  return bytes.length;
};
tty.isatty = () => false;
syncBuiltinESMExports();

await import(join(root, 'dist/cli.js'));
