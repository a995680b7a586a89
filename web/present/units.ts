// Numbers for people. Sizes are decimal (1 MB = 10^6 bytes), as in file browsers and model hubs.

/** Three significant digits with trailing zeros: 1.62, 16.2, 162. */
function threeDigits(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value: number, units: string[]): string {
  let unit = 0;
  let rest = value;
  while (rest >= 999.5 && unit + 1 < units.length) {
    rest /= 1000;
    unit++;
  }
  return `${unit === 0 ? String(Math.round(rest)) : threeDigits(rest)} ${units[unit]}`.trimEnd();
}

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `1.62 MB`. */
export function bytesText(bytes: number): string {
  return scaled(bytes, byteUnits);
}

/** `1.5 MB`, `100 MB`, `1.234567 MB`: every digit that there is, and no other. */
export function exactBytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(byteUnits.length - 1, Math.floor(Math.log10(bytes) / 3 + 1e-12));
  return `${Number((bytes / 1000 ** power).toPrecision(12))} ${byteUnits[power]}`;
}

/** `2.57 M`, `8.03 B`: elements in thousands, millions and billions. */
export function elementsText(count: number): string {
  return scaled(count, ['', 'k', 'M', 'B', 'T']);
}

/** `12,345`: every digit of a whole number. Not by Intl, whose first use takes 10 ms. */
export function countText(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `31.4 %` of `whole`; '' if `whole` is 0. */
export function shareText(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '';
}

/** `5.40× smaller`, `1.03× larger`, `same size`: a change in bytes. */
export function ratioText(before: number, after: number): string {
  if (before === after || after === 0) return 'same size';
  return after < before ? `${(before / after).toFixed(2)}× smaller` : `${(after / before).toFixed(2)}× larger`;
}

/** `850 ms`, `12.3 s`, `3 min 20 s`, `2 h 5 min`. */
export function durationText(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** `20 s`, `3 min 20 s`: a time that is still to come, in whole seconds. */
export const remainingText = (milliseconds: number) => {
  const seconds = Math.max(1, Math.round(milliseconds / 1000));
  return seconds < 60 ? `${seconds} s` : durationText(1000 * seconds);
};

/** `288 × 256`; `scalar` for no dimensions. */
export function shapeText(shape: readonly number[]): string {
  return shape.length === 0 ? 'scalar' : shape.join(' × ');
}

/** Elements of a shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((count, dimension) => count * dimension, 1);
}

/** `18.2`, without the unit; `∞`, `-∞`. */
export function decibels(sqnrDb: number, digits = 1): string {
  return Number.isFinite(sqnrDb) ? sqnrDb.toFixed(digits) : sqnrDb > 0 ? '∞' : '-∞';
}

/** `18.21 dB`; `exact` when nothing differs, `-∞ dB` when not all values are finite. JSON turns Infinity into null, so null also means exact. */
export function decibelText(sqnrDb: number | null): string {
  if (sqnrDb === null || sqnrDb === Number.POSITIVE_INFINITY) return 'exact';
  return `${decibels(sqnrDb, 2)} dB`;
}

/** `3.05e-4`: errors span many decades. */
export function errorText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '∞';
  return value === 0 ? '0' : value.toExponential(2);
}

/** `1 tensor`, `3 tensors`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
