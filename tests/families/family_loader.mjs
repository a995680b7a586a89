// The Python that makes and loads checkpoints, and load_family.py as a process that answers one case after another: importing transformers
// takes seconds.
import { spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { PeerEnvironment } from '../peers/environments.mjs';
import { CommandFailed, root } from '../setup/command.mjs';

const peersSh = 'tests/interop/peers.sh';
const scriptPath = (script) => `tests/families/${script}`;

/** The newest releases of transformers and compressed-tensors: those that tests/peers/transformers/requirements.txt pins, or another of
 * transformers. */
class PinnedPython {
  #environment = new PeerEnvironment('transformers');

  constructor({ release }) {
    if (release) this.#environment.replace('transformers', release);
  }

  get title() {
    const versions = ['transformers', 'compressed-tensors', 'torch'].map((name) => [
      name,
      this.#environment.versionOf(name),
    ]);
    return versions.map((pair) => pair.join(' ')).join(', ');
  }

  run(script, args, stdio) {
    return this.#environment.spawn(scriptPath(script), args, stdio);
  }

  close() {
    this.#environment.close();
  }
}

/** Debian's older pair, a second judge. */
class DebianPython {
  title = "Debian's transformers and compressed-tensors";

  constructor() {
    const { status } = spawnSync('bash', [peersSh, 'create'], { cwd: root, stdio: ['ignore', 2, 2] });
    if (status !== 0) throw new CommandFailed(`${peersSh} create`, status ?? 1);
  }

  run(script, args, stdio) {
    return spawn(peersSh, ['run', 'python3', scriptPath(script), ...args], { cwd: root, stdio });
  }

  close() {}
}

const pythons = { pinned: PinnedPython, debian: DebianPython };
export const loaderNames = Object.keys(pythons);

/** `{ title, run(script, args, stdio) → a child process, close() }`; made where it is missing. */
export function pythonOf(loader, options = {}) {
  if (!(loader in pythons)) throw new Error(`no loader is called ${loader}; there are ${loaderNames.join(', ')}`);
  return new pythons[loader](options);
}

export class FamilyLoader {
  #process;
  #waiting = [];
  #ended = null;
  #stderr = '';

  constructor(python) {
    this.#process = python.run('load_family.py', [], ['pipe', 'pipe', 'pipe']);
    this.#process.stderr.on('data', (text) => {
      this.#stderr = `${this.#stderr}${text}`.slice(-2000);
    });
    this.#process.stdin.on('error', () => {});
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      const { resolve, reject } = this.#waiting.shift() ?? {};
      try {
        resolve?.(JSON.parse(line));
      } catch {
        reject?.(new Error(`load_family.py printed: ${line}`));
      }
    });
    this.#process.on('close', (code) => {
      this.#ended = new Error(`load_family.py ended with exit code ${code}: ${this.#stderr}`);
      for (const { reject } of this.#waiting.splice(0)) reject(this.#ended);
    });
  }

  /** The outcome of a case; cases are answered in the order in which they are asked. */
  ask(question) {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    });
  }

  close() {
    this.#process.stdin.end();
  }
}
