// What the speed of a quantized model is called.
import type { Speed, Spread } from 'wasmquant';

/** `0.412 ms`, `12.3 ms`, `1240 ms`. */
function timeText(milliseconds: number): string {
  return `${milliseconds >= 100 ? milliseconds.toFixed(0) : milliseconds.toPrecision(3)} ms`;
}

/** `12.3 ms (11.9 to 12.8)`: the median and the quartiles. */
export function spreadText({ median, low, high }: Spread): string {
  const plain = (value: number) => timeText(value).replace(/ ms$/, '');
  return `${timeText(median)} (${plain(low)} to ${plain(high)})`;
}

/** `1.31 × slower`, `2.05 × faster`, `as fast`: compared with the original. */
export function ratioOfTimes({ ratio, verdict }: Speed): string {
  if (verdict === 'alike') return 'as fast';
  return verdict === 'slower' ? `${ratio.median.toFixed(2)} × slower` : `${(1 / ratio.median).toFixed(2)} × faster`;
}

/** `smaller, not faster`, where that is so. */
export const isNotFaster = ({ verdict }: Speed) => verdict !== 'faster';
export const notFaster = 'smaller, not faster';

/** What the time is of: `12.3 ms (11.9 to 12.8) against 9.4 ms (9.2 to 9.9), median and quartiles of 31 turns each on one thread`. */
export const speedDetail = ({ milliseconds, original, turns }: Speed) =>
  `${spreadText(milliseconds)} against ${spreadText(original)}, median and quartiles of ${turns} turns each on one thread`;

/** `12.3 ms a run, 1.31 × slower than the original`. */
export function runText(speed: Speed): string {
  const { milliseconds, verdict } = speed;
  return `${timeText(milliseconds.median)} a run, ${ratioOfTimes(speed)} ${verdict === 'alike' ? 'as' : 'than'} the original`;
}

/** The same with `: smaller, not faster` where that is so. */
export const speedText = (speed: Speed) => `${runText(speed)}${isNotFaster(speed) ? `: ${notFaster}` : ''}`;
