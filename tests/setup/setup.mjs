// Prepares a checkout: npm packages from the lock file, then the C++ toolchain. Does nothing when all is in place.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram, main, needs, root, run, say } from './command.mjs';

function packagesAreCurrent() {
  const installed = join(root, 'node_modules/.package-lock.json');
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(join(root, 'package-lock.json')).mtimeMs;
}

function installNodePackages() {
  if (packagesAreCurrent()) return;
  say('installing the npm packages of package-lock.json');
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], { quietStdout: true });
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19))
    throw needs(`Node ${process.versions.node} found; Node 20.19 or newer is needed`);
}

/** The environment that CMake and Emscripten need: this process's plus what toolchain.env says. */
function toolchainEnvironment() {
  const { stdout, status } = spawnSync('bash', [
    '-c',
    'set -a; . "$0"; env -0',
    join(root, 'tests/setup/toolchain.env'),
  ]);
  if (status !== 0) throw needs('tests/setup/toolchain.env cannot be read: delete it and run this again');
  const env = Object.fromEntries(
    String(stdout)
      .split('\0')
      .filter(Boolean)
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  env.PATH = [dirname(process.execPath), env.PATH, dirname(env.WASMQUANT_NINJA)].join(':'); // CMake looks for ninja there
  return env;
}

let environment;

/** Sets up once per process; returns the environment for builds. */
export function setUp() {
  if (environment) return environment;
  checkNode();
  if (!findProgram('bash')) throw needs('bash is missing');
  installNodePackages();
  run('bash', ['tests/setup/toolchain.sh'], { quietStdout: true });
  environment = toolchainEnvironment();
  return environment;
}

if (process.argv[1] === import.meta.filename) main(() => void setUp());
