// Attention masks of padded token rows: which positions of a row are text. Padding is cut off, so that rows are what
// they would be without it: it counts nowhere, nothing attends to it, and positions begin at the first token.

import { failure } from '../api/errors.js';

/** Elements [begin, end) of the tokens in C order: the text of one row. */
export interface Run {
  begin: number;
  end: number;
}

/** Values of a mask: 1 or true for text, 0 or false for padding. */
export type MaskValues = ArrayLike<number | bigint | boolean>;

const invalid = (detail: string) => failure('argument-invalid', 'attention_mask', detail);

const shapeText = (shape: readonly number[]) => `[${shape.join(', ')}]`;

/** The run of ones of each row of `mask` [rows, length]; rows that are all padding are left out. Errors: argument-invalid (a
 * shape other than that of the tokens, a value other than 0 and 1, padding between tokens; names row and position). */
export function runsOf(mask: MaskValues, maskShape: readonly number[], shape: readonly number[]): Run[] {
  const [rows, length] = shape.length === 1 ? [1, shape[0] ?? 0] : [shape[0] ?? 0, shape[1] ?? 0];
  const isSame = maskShape.length === shape.length && maskShape.every((size, axis) => size === shape[axis]);
  if (!isSame || mask.length !== rows * length)
    throw invalid(
      `has ${mask.length} values of shape ${shapeText(maskShape)}, but the tokens have shape ${shapeText(shape)}; both must be the same`,
    );
  const runs: Run[] = [];
  for (let row = 0; row < rows; ++row) {
    let begin = -1;
    let end = -1;
    for (let i = 0; i < length; ++i) {
      const value = Number(mask[row * length + i]);
      if (value !== 0 && value !== 1)
        throw invalid(`is ${mask[row * length + i]} at row ${row}, position ${i}; 1 marks a token, 0 padding`);
      if (value === 0) continue;
      if (begin >= 0 && end !== i)
        throw invalid(
          `has padding between tokens of row ${row}, at position ${end}; padding is allowed only before or after the tokens of a row: give the parts as separate rows`,
        );
      if (begin < 0) begin = i;
      end = i + 1;
    }
    if (begin >= 0) runs.push({ begin: row * length + begin, end: row * length + end });
  }
  return runs;
}
