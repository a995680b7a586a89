// How to load what was written: the same lines on the command line and on the page. The model decides, then the format.
import type { Model, OutputFormat, RunReport } from 'wasmquant';
import type { formats } from 'wasmquant/internal';
import { ggufTexts } from './gguf_lines.js';
import { mlxTexts } from './mlx_lines.js';
import { onnxTexts } from './onnx_lines.js';
import { pythonTexts } from './python_lines.js';
import { runtimes } from './table.js';
import type { LoadText, Written } from './written.js';

export type { LoadText };

/** Whether a model is for sentence-transformers, which lists what it does in modules.json. */
export const hasModules = async (model: Pick<Model, 'siblingFile'>) =>
  (await model.siblingFile('modules.json').catch(() => null)) !== null;

const isForMlx = (format: OutputFormat) => (runtimes.mlx.formats as readonly OutputFormat[]).includes(format);

/** For every program that loads the files, the usual one first. Empty for files that only this library reads. */
export function loadTexts(
  { inputs, outputs }: typeof formats,
  { report, ...rest }: Omit<Written, 'format' | 'report'> & { report: RunReport },
): LoadText[] {
  const format = outputs[report.format];
  const written = { ...rest, report, format };
  if (!format.isWholeFile) return isForMlx(report.format) ? mlxTexts(written) : pythonTexts(written);
  const pattern = new RegExp(`(${inputs[format.container].extensions.join('|').replaceAll('.', '\\.')})$`, 'i');
  const [first] = report.files
    .map(({ name }) => name)
    .filter((name) => pattern.test(name))
    .sort();
  const path = written.pathOf(first);
  return inputs[format.container].hasGraph ? onnxTexts(path) : ggufTexts(written, path);
}
