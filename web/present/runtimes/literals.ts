// Paths in code: printable in a terminal, and the same text when the code runs.
import { printable } from '../printable.js';

/** A string literal of Python. */
export function python(text: string): string {
  const escaped = text.replace(/[\\"]/g, '\\$&');
  return `"${printable(escaped).replace(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => `\\U${hex.padStart(8, '0')}`)}"`;
}

/** A string literal of JavaScript. */
export const javascript = (text: string) => `"${printable(text.replace(/[\\"]/g, '\\$&'))}"`;

/** One word of a shell's command: in double quotes where these change nothing, else as in `$'it\'s'`. */
export function shell(text: string): string {
  if (!/["$`!]|\\[\\$`"]|\\$/.test(text) && printable(text) === text) return `"${text}"`;
  const escaped = text.replace(/[\\']/g, '\\$&');
  return `$'${printable(escaped).replace(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => `\\U${hex.padStart(8, '0')}`)}'`;
}
