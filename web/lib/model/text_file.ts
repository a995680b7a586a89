// The text of a file that was given as one: UTF-8, UTF-16 with a byte order mark, or JSON with texts. Anything else is refused
// with what it looks like, because a tokenizer makes tokens of any bytes.

import { failure } from '../api/errors.js';
import type { TextFile } from '../api/types.js';

type Bytes = Uint8Array;

const startsWith = (bytes: Bytes, text: string, at = 0) =>
  [...text].every((letter, i) => bytes[at + i] === letter.charCodeAt(0));

/** First bytes in ISO 8859-1, what such a file is, and what to do. */
const kinds: readonly [start: string, what: string, how: string][] = [
  ['PAR1', 'a Parquet table', 'write its column of texts to a .txt or .jsonl file'],
  ['ARROW1', 'an Arrow table', 'write its column of texts to a .txt or .jsonl file'],
  [
    '\xff\xff\xff\xff',
    'an Arrow stream, as the library datasets stores it',
    'write its column of texts to a .txt file',
  ],
  ['SQLite format 3', 'an SQLite database', 'write its texts to a .txt file'],
  ['\x1f\x8b', 'a gzip archive', 'unpack it'],
  ['PK\x03\x04', 'a zip archive or an office document', 'unpack it, or save it as text'],
  ['\x28\xb5\x2f\xfd', 'a Zstandard archive', 'unpack it'],
  ['BZh', 'a bzip2 archive', 'unpack it'],
  ['\xfd7zXZ', 'an xz archive', 'unpack it'],
  ["7z\xbc\xaf'", 'a 7z archive', 'unpack it'],
  ['%PDF', 'a PDF document', 'save its text as .txt'],
  ['{\\rtf', 'a document in RTF', 'save it as plain text'],
  ['\xd0\xcf\x11\xe0', 'an office document', 'save it as plain text'],
  ['GGUF', 'a GGUF file', 'give a text'],
  ['\x93NUMPY', 'an array of NumPy', 'give a text'],
  ['\x89PNG', 'a picture', 'give a text'],
  ['\xff\xd8\xff', 'a picture', 'give a text'],
  ['\xff\xfe\0\0', 'text in UTF-32', 'save it as UTF-8'],
  ['\0\0\xfe\xff', 'text in UTF-32', 'save it as UTF-8'],
];

const markup: readonly [start: RegExp, what: string][] = [
  [/^\s*(<!--[\s\S]*?-->\s*)*<(!doctype html|html|head|body)\b/i, 'a web page'],
  [/^\s*<\?xml\b/i, 'an XML document'],
];

/** Offset of the first byte that is not UTF-8: where a lenient decoder puts U+FFFD that the file does not have. */
function firstInvalid(bytes: Bytes): number {
  const lenient = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  let offset = 0;
  let from = 0;
  for (let at = lenient.indexOf('\ufffd'); at >= 0; at = lenient.indexOf('\ufffd', from)) {
    offset += new TextEncoder().encode(lenient.slice(from, at)).length;
    if (!startsWith(bytes, '\xef\xbf\xbd', offset)) return offset;
    offset += 3;
    from = at + 1;
  }
  return bytes.length;
}

const hex = (byte: number | undefined) => `0x${(byte ?? 0).toString(16).padStart(2, '0')}`;

/** UTF-8, or UTF-16 with a byte order mark; the mark is no part of the text. Errors: file-invalid. */
function decoded(bytes: Bytes, name: string): string {
  const wide = startsWith(bytes, '\xff\xfe') ? 'utf-16le' : startsWith(bytes, '\xfe\xff') ? 'utf-16be' : null;
  try {
    if (wide) return new TextDecoder(wide, { fatal: true }).decode(bytes);
  } catch (error) {
    throw failure('file-invalid', name, `begins with the byte order mark of ${wide}, but is not valid in it`, error);
  }
  const zero = bytes.indexOf(0);
  if (zero >= 0) {
    const start = bytes.subarray(0, 4096);
    const isWide = start.filter((byte) => byte === 0).length * 3 > start.length;
    const what = isWide ? 'looks like UTF-16 without a byte order mark' : 'is binary, not text';
    throw failure('file-invalid', `${name}: byte ${zero}`, `is 0x00, so the file ${what}; save the text as UTF-8`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    const at = firstInvalid(bytes);
    const detail = `${hex(bytes[at])} is not UTF-8; the file may be in ISO 8859-1 or another encoding, or binary: save the text as UTF-8`;
    throw failure('file-invalid', `${name}: byte ${at}`, detail, error);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The text of a row of JSON: a string, or its field `text`. Errors: file-invalid. */
function textOfRow(row: unknown, where: string): string {
  const text = isRecord(row) ? row.text : row;
  if (typeof text === 'string') return text;
  const fields = isRecord(row) ? Object.keys(row).slice(0, 8).join(', ') : '';
  const detail = fields ? `has no "text" with a string; its fields are ${fields}` : 'is no object with a "text"';
  throw failure('file-invalid', where, `${detail}: call the field with the texts "text", or give plain text`);
}

/** Texts of JSON lines, or of a list in one JSON document; null for other texts. Errors: file-invalid. */
function rowsOf(text: string, name: string): { texts: string[]; what: string } | null {
  const lines = text.split(/\r?\n/);
  const first = lines.find((line) => line.trim() !== '') ?? '';
  if (isRecord(parsed(first))) {
    const texts = lines.flatMap((line, at) => {
      if (line.trim() === '') return [];
      const row = parsed(line);
      if (row === undefined)
        throw failure('file-invalid', `${name}: line ${at + 1}`, 'is not JSON, as the lines before it are');
      return textOfRow(row, `${name}: line ${at + 1}`);
    });
    return { texts, what: 'JSON lines' };
  }
  const whole = /^\s*[{[]/.test(text) ? parsed(text) : undefined;
  if (isRecord(whole) || (Array.isArray(whole) && whole.some((row) => typeof row === 'string' || isRecord(row)))) {
    const rows: unknown[] = Array.isArray(whole) ? whole : [whole];
    return { texts: rows.map((row, at) => textOfRow(row, `${name}: /${at}`)), what: 'JSON' };
  }
  return null;
}

/** Of {@link readTextFile}. */
export function readText(bytes: Uint8Array, name: string): TextFile {
  const kind = kinds.find(([start]) => startsWith(bytes, start));
  if (kind) throw failure('file-invalid', name, `is ${kind[1]}, not text; ${kind[2]}`);
  const text = decoded(bytes, name);
  const found = markup.find(([start]) => start.test(text.slice(0, 4096)));
  if (found) throw failure('file-invalid', name, `is ${found[1]}; its tags would be read as text: save only the text`);
  const rows = rowsOf(text, name);
  if (!rows) return { text, remark: null };
  const { texts, what } = rows;
  const count = texts.length === 1 ? 'the field "text" of one row' : `the field "text" of ${texts.length} rows`;
  return { text: texts, remark: `${name} is ${what}: ${count} is read as one text` };
}
