/** The progress bar, on stderr and only in a terminal. */
import type { SingleBar } from 'cli-progress';
import type { Progress } from '../lib/node.js';
import { bytesText, durationText } from '../present/units.js';
import { err } from './streams.js';
import { cut } from './tables.js';
import { printable, type Terminal } from './terminal.js';

const kLabels: Record<Progress['phase'], string> = {
  read: 'reading',
  calibrate: 'calibrating',
  optimize: 'optimizing',
  quantize: 'quantizing',
  write: 'writing',
  evaluate: 'evaluating',
};
/** Characters of the bar; with sizes, rate and remaining time a line fits 80 columns. */
const kBarSize = 16;
/** Early rates are unreliable. */
const kFirstRateMs = 500;

export class ProgressBar {
  #bar: SingleBar | null = null;
  readonly #started = performance.now();
  #running = false;
  #latest: Progress | null = null;
  readonly #stop = () => this.stop();

  constructor(
    terminal: Terminal,
    /** Word before the bar; default the phase. */
    readonly label?: string,
  ) {
    if (terminal.live) void this.#load(terminal);
  }

  /** On demand: most output is no terminal. */
  async #load({ err: colors }: Terminal): Promise<void> {
    const { default: cliProgress } = await import('cli-progress');
    this.#bar = new cliProgress.SingleBar({
      stream: err as unknown as NodeJS.WriteStream, // it writes and moves the cursor, no more
      hideCursor: true,
      clearOnComplete: true,
      barsize: kBarSize,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      format: (options, params) => {
        const bar = cliProgress.Format.BarFormat(params.progress, options);
        const [head, tensor] = this.#text();
        const room = (err.columns || 80) - head.length - kBarSize - 9;
        const name = room > 12 ? cut(tensor, room) : '';
        return `${bar} ${String(Math.floor(params.progress * 100)).padStart(3)} %  ${head} ${colors.dim(name)}`;
      },
    });
  }

  /** Callback for `onProgress`. */
  readonly update = (progress: Progress): void => {
    this.#latest = progress;
    if (!this.#bar) return;
    if (!this.#running) {
      this.#running = true;
      this.#bar.start(progress.bytesTotal, progress.bytesDone);
      process.once('exit', this.#stop); // a second SIGINT ends the process; the cursor must be restored
    }
    this.#bar.update(progress.bytesDone);
  };

  /** Clears the line. Can be called repeatedly. */
  stop(): void {
    if (!this.#running) return;
    this.#running = false;
    this.#bar?.stop();
    process.removeListener('exit', this.#stop);
  }

  #text(): [head: string, tensor: string] {
    const progress = this.#latest;
    if (!progress) return ['', ''];
    const { bytesDone, bytesTotal, phase } = progress;
    const elapsedMs = performance.now() - this.#started;
    const parts = [this.label ?? kLabels[phase], `${bytesText(bytesDone)} of ${bytesText(bytesTotal)}`];
    if (elapsedMs > kFirstRateMs && bytesDone > 0) {
      const bytesPerMs = bytesDone / elapsedMs;
      parts.push(`${bytesText(bytesPerMs * 1000)}/s`, `${durationText((bytesTotal - bytesDone) / bytesPerMs)} left`);
    }
    return [parts.join('  '), printable(progress.tensor ?? '')];
  }
}
