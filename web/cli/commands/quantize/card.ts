/** `--card`: README.md in the folder of the output, or of the outputs of several presets. */
import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { outputFormatsOf } from '../../../lib/internal.js';
import type { Model } from '../../../lib/node.js';
import { type CardRow, modelCard, repositoryOf } from '../../../present/model_card.js';
import { percent } from '../../../present/verdict.js';
import { weightError } from '../../../present/weight_error.js';
import { checkReportPath, writeWhole } from '../../report_file.js';
import { type Measured, measuredCells } from './measure.js';
import { type FinishedRun, specsText } from './report_lines.js';
import type { QuantizeOptions } from './run.js';

const kName = 'README.md';

/** Throws before the run if the card cannot be written. That of a folder which is not there yet comes with it. */
export async function checkCard(options: QuantizeOptions, folder: string): Promise<void> {
  if (options.card !== true || options.resume || !(await stat(folder).catch(() => null))) return;
  await checkReportPath({ ...options, report: join(folder, kName) }, [], '--card');
}

/** Of one output: a folder, or a file's. */
export const cardFolderOf = (output: string) => (outputFormatsOf(output).length > 0 ? dirname(output) : output);

export interface CardRun extends FinishedRun {
  scheme: string;
  measured: Measured;
}

function rowOf({ report, output, scheme, measured }: CardRun): CardRow {
  const error = weightError(report);
  return {
    name: basename(output),
    scheme,
    bytes: report.totals.bytesAfter,
    bitsPerWeight: report.totals.bitsPerWeight,
    measured: { ...(error !== null && { 'weights off by': percent(error) }), ...measuredCells(measured) },
  };
}

/** Its path. `argument`: the model, as the command names it. */
export async function writeCard(
  argument: string,
  model: Model,
  folder: string,
  runs: CardRun[],
  textFile?: string,
): Promise<string> {
  const [first] = runs as [CardRun, ...CardRun[]];
  const bytes = await model.siblingFile('README.md');
  const warnings = first.report.diagnostics.filter(({ severity }) => severity === 'warning');
  const text = modelCard({
    source: {
      name: basename(argument.replace(/[/\\]+$/, '')),
      bytes: first.report.totals.bytesBefore,
      repository: repositoryOf(argument),
      card: bytes === null ? null : new TextDecoder().decode(bytes),
    },
    format: first.report.format,
    version: first.report.identity.library,
    rows: runs.map(rowOf),
    notes:
      textFile === undefined
        ? []
        : [`KLD: of the source's predictions of the next token, on \`${basename(textFile)}\`.`],
    specs: runs.length === 1 ? specsText(first.report.tensors) : '',
    // Paths of this machine say nothing elsewhere.
    load: first.load.map((line) => line.replaceAll(first.output, basename(first.output))),
    warnings: runs.length === 1 ? warnings.map(({ message }) => message) : [],
  });
  const path = join(folder, kName);
  await writeWhole(path, text);
  return path;
}
