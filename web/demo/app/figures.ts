// Numbers as text: decimal units (1 kB = 1000 bytes, as download lists and disks count), three significant digits.

const plain = new Intl.NumberFormat('en');

export function count(value: number): string {
  return plain.format(value);
}

function scaled(value: number, units: string[]): string {
  let unit = 0;
  let rest = value;
  while (rest >= 999.5 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || rest >= 99.95 ? 0 : rest >= 9.995 ? 1 : 2;
  return `${rest.toFixed(digits)}${units[unit]}`;
}

/** 10302496 → `10.3 MB` */
export function bytes(value: number): string {
  return scaled(value, [' B', ' kB', ' MB', ' GB', ' TB']);
}

/** 2574592 → `2.57 M` */
export function parameters(value: number): string {
  return scaled(value, ['', ' K', ' M', ' B', ' T']);
}

/** Seconds as `8 s`, `2 min 05 s`, `1 h 04 min`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const pad = (value: number) => String(value).padStart(2, '0');
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} min`;
}

/** Signal-to-noise ratio in dB. */
export function decibels(value: number): string {
  return Number.isFinite(value) ? value.toFixed(1) : value > 0 ? '∞' : '−∞';
}

/** Change of size as a person says it. */
export function ratio(before: number, after: number): string {
  if (before === after || after === 0) return 'same size';
  return after < before ? `${(before / after).toFixed(2)}× smaller` : `${(after / before).toFixed(2)}× larger`;
}
