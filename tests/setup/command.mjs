// Running programs for the set-up and test scripts: output goes straight to the terminal, a failure ends the script with
// the program's exit code.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** One line about what the set-up does, on stderr. */
export function say(text) {
  process.stderr.write(`set-up: ${text}\n`);
}

/** Thrown when a program fails; `exitCode` is the program's. */
export class CommandFailed extends Error {
  constructor(command, exitCode) {
    super(`${command} ended with exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/**
 * Runs a program in the checkout and waits. `quietStdout` sends its stdout to stderr, for scripts whose own stdout is data.
 * Throws CommandFailed.
 */
export function run(command, args, { env = process.env, cwd = root, quietStdout = false } = {}) {
  const { status, signal, error } = spawnSync(command, args, { cwd, env, stdio: ['ignore', quietStdout ? 2 : 1, 2] });
  if (error?.code === 'ENOENT') throw needs(`'${command}' is missing: install it and run this again`);
  if (error) throw error;
  if (status !== 0)
    throw new CommandFailed(`${command} ${args.slice(0, 3).join(' ')}`, status ?? 128 + (signal === 'SIGINT' ? 2 : 1));
}

/** Like `run`, but shows stdout and keeps it: resolves to `{ exitCode, output }` and does not throw on failure. */
export function runAndKeep(command, args, { env = process.env, cwd = root } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8');
    child.stdout.on('data', (text) => {
      output += text;
      process.stdout.write(text);
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ exitCode: code ?? 1, output }));
  });
}

/** Path of the first of `names` that PATH has, or null. */
export function findProgram(...names) {
  for (const name of names) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
      const path = join(folder, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {}
    }
  }
  return null;
}

const isRoot = process.getuid?.() === 0;

/** Installs Debian packages when this is root on Debian. Returns whether it did; never asks anything. */
export function installPackages(...packages) {
  if (!isRoot || !findProgram('apt-get')) return false;
  say(`installing ${packages.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const patient = ['-qq', '-o', 'DPkg::Lock::Timeout=600', '-o', 'Acquire::Retries=5'];
  spawnSync('apt-get', [...patient, 'update'], { env, stdio: ['ignore', 2, 2] });
  run('apt-get', [...patient, 'install', '-y', '--no-install-recommends', ...packages], { env, quietStdout: true });
  return true;
}

/** Runs a script's main function; a failed program ends this process with that program's exit code. */
export async function main(body) {
  try {
    const exitCode = await body(process.argv.slice(2));
    if (typeof exitCode === 'number') process.exitCode = exitCode;
  } catch (error) {
    const expected = error instanceof CommandFailed || error.setUp;
    process.stderr.write(`${expected ? error.message : error.stack}\n`);
    process.exitCode = error.exitCode ?? 1;
  }
}

/** An error that says what the person at the terminal has to do. */
export function needs(message) {
  return Object.assign(new Error(`set-up: ${message}`), { setUp: true });
}
