// The graphs of a model in parts, such as encoder and decoder, and their files of other dtypes as transformers.js names
// them: encoder_model.onnx, encoder_model_fp16.onnx, encoder_model_q4.onnx.

import { failure } from '../api/errors.js';
import { inputFormatOf, onnxSuffixes } from '../api/formats.js';
import type { Diagnostic } from '../api/types.js';

/** Suffixes of files with float weights, best first; '' is float32. */
const floatSuffixes = ['', '_fp32', '_fp16'];

/** The graphs of a folder. */
export interface OnnxParts {
  /** The file of each part, `model` first, else by name. */
  files: string[];
  /** Files of the same parts in other dtypes. */
  others: string[];
}

function splitName(name: string): { part: string; suffix: string } {
  const stem = name.replace(/\.onnx$/i, '');
  const suffix = onnxSuffixes.find((end) => stem.endsWith(end) && stem.length > end.length) ?? '';
  return { part: stem.slice(0, stem.length - suffix.length), suffix };
}

/** Chooses each part's file with float weights, or its only one. Errors: source-invalid if a part has several quantized
 * files and no other. */
export function onnxParts(where: string, names: readonly string[]): OnnxParts {
  const parts = new Map<string, Map<string, string>>();
  for (const name of names.filter((name) => inputFormatOf(name) === 'onnx')) {
    const { part, suffix } = splitName(name);
    parts.set(part, (parts.get(part) ?? new Map()).set(suffix, name));
  }
  const files: string[] = [];
  const others: string[] = [];
  for (const part of [...parts.keys()].sort(
    (a, b) => Number(b === 'model') - Number(a === 'model') || (a < b ? -1 : 1),
  )) {
    const bySuffix = parts.get(part) ?? new Map<string, string>();
    const suffix = floatSuffixes.find((suffix) => bySuffix.has(suffix));
    const all = [...bySuffix.values()];
    const chosen = suffix === undefined ? all[0] : bySuffix.get(suffix);
    if (chosen === undefined) continue;
    if (suffix === undefined && all.length > 1)
      throw failure(
        'source-invalid',
        where,
        `has ${part} only in quantized files: ${all.join(', ')}; name one of them`,
      );
    files.push(chosen);
    others.push(...all.filter((name) => name !== chosen));
  }
  return { files, others };
}

/** Says which files belong to the model, and which do not. */
export function partRemarks([first, ...more]: string[], others: readonly string[]): Diagnostic[] {
  const remark = (where: string, message: string, hint: string): Diagnostic => ({
    severity: 'note',
    code: 'onnx-parts',
    where,
    message,
    hint,
  });
  return [
    ...(more.length > 0
      ? [
          remark(
            first ?? '',
            `is a part of a model; the others are ${more.join(', ')}`,
            'runs into a folder write all of them',
          ),
        ]
      : []),
    ...(others.length > 0
      ? [
          remark(
            others[0] ?? '',
            `is left out, with ${others.length - 1} more: files of the same graph in another dtype`,
            '',
          ),
        ]
      : []),
  ];
}
