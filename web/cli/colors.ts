/** Colours of a terminal. */

export type Paint = (text: string) => string;

/** Codes that begin and end a style (ECMA-48, select graphic rendition). */
const kStyles = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Colors = Record<keyof typeof kStyles, Paint>;

/** A style goes on behind another that ends within its text. */
function painted([begin, end]: readonly [number, number]): Paint {
  const [on, off] = [`\x1b[${begin}m`, `\x1b[${end}m`];
  return (text) => `${on}${text.replaceAll(off, off + on)}${off}`;
}

const styles = (paintOf: (codes: readonly [number, number]) => Paint) =>
  Object.fromEntries(Object.entries(kStyles).map(([name, codes]) => [name, paintOf(codes)])) as Colors;

const colored = styles(painted);
const plain = styles(() => String);

export const colorsFor = (areWanted: boolean): Colors => (areWanted ? colored : plain);
