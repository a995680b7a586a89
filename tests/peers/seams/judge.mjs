// judge.py and load.py as processes that answer one case after another.
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PeerEnvironment } from '../environments.mjs';

/** A script that answers questions, started again where it has ended. */
class Answers {
  #environment;
  #script;
  #process = null;
  #waiting = [];
  #complaints = '';

  /** `environment`: the PeerEnvironment that the script runs in. */
  constructor(environment, script) {
    [this.#environment, this.#script] = [environment, script];
  }

  #start() {
    this.#process = this.#environment.start(this.#script);
    this.#complaints = '';
    this.#process.stderr.setEncoding('utf8').on('data', (text) => {
      this.#complaints = (this.#complaints + text).slice(-2000);
    });
    createInterface({ input: this.#process.stdout }).on('line', (line) =>
      this.#waiting.shift()?.resolve(JSON.parse(line)),
    );
    this.#process.on('close', (code) => {
      this.#process = null;
      for (const { reject } of this.#waiting.splice(0))
        reject(new Error(`${this.#script} ended with exit code ${code}: ${this.#complaints}`));
    });
  }

  ask(question) {
    if (!this.#process) this.#start();
    const answer = new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    return answer;
  }

  close() {
    this.#process?.stdin.end();
  }
}

/** Decoders that are not ours. */
export class Judge {
  #answers = new Answers(new PeerEnvironment('seams', { needsTorch: false }), 'judge.py');

  /** What is wrong with the case's output: a list of texts. */
  async problems(question) {
    return (await this.#answers.ask(question)).problems;
  }

  close() {
    this.#answers.close();
  }
}

/** Formats that a package reads, and the environment of the package. */
const packages = { 'compressed-tensors': 'transformers', quark: 'quark', gptq: 'gptqmodel', awq: 'gptqmodel' };
/** How much farther than in a few draws what modules round may move the logits: they do not round at random. */
const swayFactor = 4;
/** Rounding of float32, of bfloat16 with 8 bits in two blocks, and of inputs to 8 and 4 bits, which the decoded weights meet unrounded. */
const bounds = { float32: 2e-3, bfloat16: 6e-2, inputs: 0.5 };

/** The loaders that people use, each started when it is first asked. */
export class Loaders {
  #started = new Map();

  /** Whether there is one for such a case. */
  static reads({ format, family }) {
    return format in packages && family !== 'of no family';
  }

  /** {refused: TEXT} or {problems: TEXTS} for a case whose weights judge.py decoded. A loader may refuse what the plan has warned of. */
  async load({ format, output, decoded, loadsAs, warned }) {
    if (!this.#started.has(format)) {
      const script = join(import.meta.dirname, 'load.py');
      this.#started.set(format, new Answers(new PeerEnvironment(packages[format]), script));
    }
    const ask = (dtype) => this.#started.get(format).ask({ output, decoded, ...loadsAs, dtype });
    let dtype = loadsAs.dtype;
    let { difference, ofModules, isWhole, sway, isInBfloat16, error, isOfModel } = await ask(dtype);
    if (error) {
      dtype = 'bfloat16';
      ({ difference, ofModules, isWhole, sway, error, isOfModel } = await ask('auto'));
    }
    if (error && (isOfModel || warned.length > 0)) return { refused: error };
    if (error) return { problems: [`no warning that its loader refuses it: ${error}`] };
    if (isInBfloat16) dtype = 'bfloat16';
    const { roundsInputs } = loadsAs;
    const bound = bounds[roundsInputs ? 'inputs' : dtype];
    // Logits say little where all modules were compared, and what rounded inputs do to them has no bound.
    const ofLogits = !isWhole ? bound : roundsInputs ? Number.POSITIVE_INFINITY : Math.max(bound, swayFactor * sway);
    if (ofModules <= bound && difference <= ofLogits) return { problems: [] };
    const problem = `the loader's logits differ by ${difference.toPrecision(3)} of the largest, outputs of a module by ${ofModules.toPrecision(3)}`;
    return warned.length > 0 ? { refused: problem } : { problems: [problem] };
  }

  close() {
    for (const answers of this.#started.values()) answers.close();
  }
}
