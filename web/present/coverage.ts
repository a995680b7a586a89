// How much of a model is quantized, in words: for the command line and the page.

/** Number of reasons listed; the rest are counted. */
const shownReasons = 5;

/** Of the source, in elements and bytes. */
interface Shares {
  parameters: number;
  quantizedParameters: number;
  bytes: number;
  quantizedBytes: number;
}

/** `93.1 %`. Only everything is 100 %, only nothing 0 %. */
export function percentText(part: number, whole: number): string {
  if (part === 0 || whole === 0) return '0 %';
  if (part === whole) return '100 %';
  return `${Math.min(99.9, Math.max(0.1, (100 * part) / whole)).toFixed(1)} %`;
}

/** `93.1 % of parameters, 96.0 % of bytes`. */
export function coverageText({ parameters, quantizedParameters, bytes, quantizedBytes }: Shares): string {
  return `${percentText(quantizedParameters, parameters)} of parameters, ${percentText(quantizedBytes, bytes)} of bytes`;
}

/** The first reasons, and a line that counts the rest; '' if there are none. */
export function shownLeft<Left>(left: readonly Left[]): { shown: Left[]; more: string } {
  const hidden = left.length - shownReasons;
  const more = hidden > 0 ? `and ${hidden} more ${hidden === 1 ? 'reason' : 'reasons'}` : '';
  return { shown: left.slice(0, shownReasons), more };
}
