// Files of text as input of a model.

import { check } from './api/arguments.js';
import { loaded } from './api/loaded.js';
import type { TextFile } from './api/types.js';

/**
 * The text of a file, for `text` of a calibration or an evaluation: UTF-8, UTF-16 with a byte order mark, or JSON lines, whose fields
 * `text` are one text. `name`: for messages.
 * @throws QuantizationError file-invalid, with the byte or the line, for what is not text: Parquet, archives, web pages, PDF, other
 * encodings
 */
export async function readTextFile(bytes: Uint8Array, name: string): Promise<TextFile> {
  check(bytes, 'bytes', 'bytes');
  check(name, 'string', 'name');
  const { readText } = await loaded(import('./model/text_file.js'));
  return readText(bytes, name);
}
