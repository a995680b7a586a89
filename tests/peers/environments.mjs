// Python environments of the peers: tests/peers/NAME/requirements.txt becomes .peers-python/NAME/ at the root of the checkout, a
// venv with exactly the packages that the file pins, from wheels but for those that the file names under --no-binary. torch is large, so it has an environment of its own, which the others
// see through a .pth file. Nothing is installed that no file pins (pip install --no-deps), so no package can pull in another build
// of torch.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { findProgram, installPackages, needs, root, say } from '../setup/command.mjs';

/** The wheels of torch that the requirements name are for this one. */
const pythonVersion = '3.11';
const sharedName = 'torch';

const folderOf = (name) => join(root, '.peers-python', name);
const requirementsOf = (name) => readFileSync(join(root, 'tests/peers', name, 'requirements.txt'), 'utf8');
const sitePackages = (name) => join(folderOf(name), `lib/python${pythonVersion}/site-packages`);
const pythonOf = (name) => join(folderOf(name), 'bin/python');

/** Variables of every Python process here: hubs are offline, caches stay in the environment. */
function environmentOf(name) {
  return {
    ...process.env,
    PYTHONNOUSERSITE: '1',
    HF_HUB_OFFLINE: '1',
    TRANSFORMERS_OFFLINE: '1',
    HF_DATASETS_OFFLINE: '1',
    HF_HUB_DISABLE_TELEMETRY: '1',
    HF_HOME: join(folderOf(name), 'cache/huggingface'),
    TORCH_EXTENSIONS_DIR: join(folderOf(name), 'cache/torch_extensions'),
    PYTHONPYCACHEPREFIX: join(folderOf(name), 'cache/bytecode'),
    PYTHONPATH: join(root, 'tests/peers/runtimes'),
    PATH: `${join(folderOf(name), 'bin')}:${process.env.PATH}`,
  };
}

/** Python with its venv module; as root on Debian it is installed. */
function systemPython() {
  const name = `python${pythonVersion}`;
  const hasVenv = () =>
    findProgram(name) && spawnSync(name, ['-c', 'import ensurepip, venv'], { stdio: 'ignore' }).status === 0;
  if (!hasVenv() && !(installPackages(name, `${name}-venv`) && hasVenv()))
    throw needs(`${name} with its venv module is missing: install them (Debian: ${name}-venv) and run this again`);
  return findProgram(name);
}

function pip(name, args, stdio) {
  const { status, stdout } = spawnSync(pythonOf(name), ['-m', 'pip', '--disable-pip-version-check', ...args], {
    env: environmentOf(name),
    encoding: 'utf8',
    stdio,
  });
  return { ok: status === 0, stdout };
}

/** Names and versions that a requirements file or pip freeze lists, in one spelling; lines with options of pip are none. */
function pins(text) {
  const lines = text.split('\n').map((line) => line.replace(/\s*#.*/, '').trim());
  const named = lines.filter((line) => line && !line.startsWith('--'));
  return new Set(named.map((line) => line.toLowerCase().replaceAll(/[_.](?=.*==)/g, '-')));
}

/** What is installed must be what the file pins: neither another version, nor more. */
function verify(name) {
  const wanted = pins(requirementsOf(name));
  const { ok, stdout } = pip(name, ['freeze', '--local'], ['ignore', 'pipe', 2]);
  const found = pins(stdout);
  const differing = [...wanted].filter((pin) => !found.has(pin)).concat([...found].filter((pin) => !wanted.has(pin)));
  if (!ok || differing.length > 0)
    throw needs(
      `.peers-python/${name} is not what tests/peers/${name}/requirements.txt pins (${differing.join(', ')}): ` +
        'delete that folder and run this again',
    );
}

function install(name) {
  say(`making .peers-python/${name} from tests/peers/${name}/requirements.txt`);
  rmSync(folderOf(name), { recursive: true, force: true });
  mkdirSync(join(root, '.peers-python'), { recursive: true });
  const { status } = spawnSync(systemPython(), ['-m', 'venv', folderOf(name)], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw needs(`python${pythonVersion} cannot make a venv (see above)`);
  const file = join(root, 'tests/peers', name, 'requirements.txt');
  const options = ['install', '-qq', '--no-compile', '--no-deps', '--only-binary', ':all:', '-r', file];
  if (pip(name, options, ['ignore', 2, 2]).ok) {
    // Only now: pip does not install what it sees there.
    const shared = join(sitePackages(name), 'shared_torch.pth');
    if (name !== sharedName) writeFileSync(shared, `${sitePackages(sharedName)}\n`);
    return;
  }
  rmSync(folderOf(name), { recursive: true, force: true });
  const torch = [...pins(requirementsOf(name))].find((pin) => pin.startsWith('torch=='));
  if (torch)
    throw needs(
      `pip does not find ${torch} for Python ${pythonVersion}, PyTorch's build without CUDA: add an index that has such builds ` +
        '(PIP_EXTRA_INDEX_URL), or the folder of a wheel (PIP_FIND_LINKS), and run this again',
    );
  throw needs(`pip cannot install tests/peers/${name}/requirements.txt (see above)`);
}

/** Makes the environment if it is not there yet, or was made from other requirements. */
function prepare(name) {
  const stamp = join(folderOf(name), '.ready');
  const digest = createHash('sha256').update(requirementsOf(name)).digest('hex');
  const isReady = existsSync(stamp) && readFileSync(stamp, 'utf8') === digest && existsSync(pythonOf(name));
  if (!isReady) install(name);
  verify(name);
  writeFileSync(stamp, digest);
}

/** The environment of a peer, with the one that it shares: made on the first use, checked at every one. */
export class PeerEnvironment {
  #replaced = null;

  /** `needsTorch`: whether its scripts import torch. */
  constructor(name, { needsTorch = true } = {}) {
    this.name = name;
    if (needsTorch) prepare(sharedName);
    if (name !== sharedName) prepare(name);
  }

  /** Puts another release of a package before the pinned one, in a folder that close() deletes. `release`: a version, or "newest". */
  replace(distribution, release) {
    const folder = mkdtempSync(join(tmpdir(), `wasmquant-${distribution}-`));
    const wanted = release === 'newest' ? distribution : `${distribution}==${release}`;
    const options = [
      'install',
      '-qq',
      '--no-compile',
      '--no-deps',
      '--only-binary',
      ':all:',
      '--target',
      folder,
      wanted,
    ];
    if (!pip(this.name, options, ['ignore', 2, 2]).ok) throw needs(`pip cannot install ${wanted} (see above)`);
    const prefix = `${distribution.replaceAll('-', '_')}-`;
    const info = readdirSync(folder).find((name) => name.startsWith(prefix) && name.endsWith('.dist-info'));
    this.#replaced = { distribution, folder, version: info.slice(prefix.length, -'.dist-info'.length) };
  }

  /** The version of a package: the pinned one, unless it was replaced. */
  versionOf(distribution) {
    if (this.#replaced?.distribution === distribution) return this.#replaced.version;
    const found = [...pins(requirementsOf(this.name)), ...pins(requirementsOf(sharedName))];
    return found.find((pin) => pin.startsWith(`${distribution}==`))?.slice(distribution.length + 2);
  }

  /** The program that runs Python here, and its variables. */
  interpreter() {
    return { python: pythonOf(this.name), env: environmentOf(this.name) };
  }

  /** A child process that runs a script of the checkout. */
  spawn(script, args, stdio) {
    const env = environmentOf(this.name);
    if (this.#replaced) env.PYTHONPATH = [this.#replaced.folder, env.PYTHONPATH].join(delimiter);
    return spawn(pythonOf(this.name), [script, ...args], { cwd: root, env, stdio });
  }

  /** Deletes what replace() installed. */
  close() {
    if (this.#replaced) rmSync(this.#replaced.folder, { recursive: true, force: true });
  }

  /** Runs a script to its end. Throws when it fails. */
  async run(script, ...args) {
    for await (const _ of this.lines(script, ...args));
  }

  /** Starts a script of tests/peers/NAME, or a path: a child process with pipes, whose standard input is `input`. */
  start(script, args = [], input = 'pipe') {
    const path = resolve(root, 'tests/peers', this.name, script);
    return this.spawn(path, args, [input, 'pipe', 'pipe']);
  }

  /** Runs such a script; yields the JSON of each line that it prints. Throws when it fails. */
  async *lines(script, ...args) {
    const child = this.start(script, args, 'ignore');
    let complaints = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      complaints = (complaints + text).slice(-4000);
    });
    const ended = once(child, 'close');
    for await (const line of createInterface({ input: child.stdout })) if (line.startsWith('{')) yield JSON.parse(line);
    const [status] = await ended;
    if (status !== 0) throw new Error(`${script} ended with exit code ${status}\n${complaints}`);
  }
}
