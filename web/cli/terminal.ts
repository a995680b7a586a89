/**
 * What may be printed to a terminal, and in which colours. Names in model files are untrusted: control characters, bidirectional
 * overrides and lone surrogates are shown as escapes, so that no file can move the cursor, hide text or forge a line.
 */
import { escapedBy, printable } from '../present/printable.js';
import { type Colors, colorsFor, type Paint } from './colors.js';
import { err, out } from './streams.js';

export type { Colors, Paint };

/** Where a command prints. */
export interface Terminal {
  /** Colours of stdout. */
  out: Colors;
  /** Colours of stderr. */
  err: Colors;
  /** Width of stdout in characters; Infinity if it is not a terminal. */
  columns: number;
  /** Whether to show progress and remarks: stderr is a terminal, without `--quiet`. */
  live: boolean;
  /** Stdout gets one JSON document and nothing else. */
  json: boolean;
}

/** Options of every command. */
export interface OutputOptions {
  json?: boolean;
  quiet?: boolean;
  color?: boolean;
}

export { printable };

/** ASCII escapes for everything {@link printable} escapes: 8-bit controls affect terminals too. */
const escapedLine = (line: string) =>
  escapedBy(line, (character) =>
    [...Array(character.length).keys()]
      .map((unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`)
      .join(''),
  );
/** Newlines are between members; those in strings are escaped in JSON already. */
const escaped = (json: string) => json.split('\n').map(escapedLine).join('\n');

/** JSON text of one line per level, escaped. */
export function jsonText(value: unknown): string {
  return escaped(JSON.stringify(value, null, 2));
}

/** The same for a whole document, with one line per list element. */
export function documentText(document: unknown): string {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return jsonText(document);
  const isTable = (value: unknown): value is object[] =>
    Array.isArray(value) && value.length > 0 && value.every((row) => typeof row === 'object' && row !== null);
  const textOf = (value: unknown) =>
    isTable(value)
      ? `[\n${value.map((row) => `    ${JSON.stringify(row)}`).join(',\n')}\n  ]`
      : JSON.stringify(value, null, 2).replaceAll('\n', '\n  ');
  const members = Object.entries(document)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `  ${JSON.stringify(key)}: ${textOf(value)}`);
  return escaped(`{\n${members.join(',\n')}\n}`);
}

/** NO_COLOR and `--no-color` override FORCE_COLOR, which overrides the kind of stream. */
function wantsColor(stream: { isTTY: boolean }, options: OutputOptions): boolean {
  if (options.color === false || process.env.NO_COLOR) return false;
  if (process.env.FORCE_COLOR) return process.env.FORCE_COLOR !== '0';
  return stream.isTTY && process.env.TERM !== 'dumb';
}

/** Inspects the streams of this process. */
export function terminalFor(options: OutputOptions): Terminal {
  const json = options.json === true;
  return {
    out: colorsFor(!json && wantsColor(out, options)),
    err: colorsFor(wantsColor(err, options)),
    columns: out.isTTY ? out.columns || 80 : Number.POSITIVE_INFINITY,
    live: err.isTTY && options.quiet !== true,
    json,
  };
}
