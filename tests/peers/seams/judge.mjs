// judge.py as a process that answers one case after another.
import { createInterface } from 'node:readline';

export class Judge {
  #process;
  #waiting = [];
  #complaints = '';

  /** `environment`: the PeerEnvironment that judge.py runs in. */
  constructor(environment) {
    this.#process = environment.start('judge.py');
    this.#process.stderr.setEncoding('utf8').on('data', (text) => {
      this.#complaints = (this.#complaints + text).slice(-2000);
    });
    createInterface({ input: this.#process.stdout }).on('line', (line) =>
      this.#waiting.shift()?.resolve(JSON.parse(line)),
    );
    this.#process.on('close', (code) => {
      for (const { reject } of this.#waiting.splice(0))
        reject(new Error(`judge.py ended with exit code ${code}: ${this.#complaints}`));
    });
  }

  /** What is wrong with the case's output: a list of texts. */
  async problems(question) {
    const answer = new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    return (await answer).problems;
  }

  close() {
    this.#process.stdin.end();
  }
}
