// load_family.py as a process that answers one case after another: importing transformers takes seconds.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../setup/command.mjs';

const peers = join(root, 'tests/interop/peers.sh');

/** A Python script of this folder among the peers: a child process. */
export function python(script, args, stdio) {
  return spawn(peers, ['run', 'python3', `tests/families/${script}`, ...args], { cwd: root, stdio });
}

export class FamilyLoader {
  #process = python('load_family.py', [], ['pipe', 'pipe', 'pipe']);
  #waiting = [];
  #ended = null;
  #stderr = '';

  constructor() {
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
