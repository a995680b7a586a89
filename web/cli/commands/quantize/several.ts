/** `--preset q4_k_m,q5_k_m,q8_0`: the model is opened once, and becomes a file or folder for each preset, in one folder. */
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { outputFormatsOf } from '../../../lib/node.js';
import { bytesText, durationText, shareText } from '../../../present/units.js';
import { percent } from '../../../present/verdict.js';
import { weightError } from '../../../present/weight_error.js';
import { CommandError, usageError } from '../../failure.js';
import { modelSummary } from '../../model_source.js';
import type { Context, Outcome } from '../../outcome.js';
import { checkReportPath, writeReport } from '../../report_file.js';
import { err } from '../../streams.js';
import { table } from '../../tables.js';
import { printable } from '../../terminal.js';
import type { FinishedRun } from './report_lines.js';
import { type QuantizeOptions, runInto, usualOutput, withInputs } from './run.js';

type Row = FinishedRun & { preset: string };

/** The presets of a list; null: there is at most one. */
export function namedPresets({ preset, output, shards }: QuantizeOptions): string[] | null {
  if (!preset?.includes(',')) return null;
  const names = preset.split(',').map((name) => name.trim().toLowerCase());
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw usageError(`--preset names ${twice === '' ? 'nothing' : twice} twice: ${preset}`);
  if (outputFormatsOf(output ?? '').length > 0)
    throw usageError(`--output names a file, and --preset several: ${preset}`, 'give a folder: -o ./out');
  if (shards) throw usageError('--shards goes with one preset', 'run it once for each');
  return names;
}

/** Where each run writes. Throws target-exists before any of them begins. */
async function outputsOf(outputs: string[], { force, resume }: QuantizeOptions): Promise<string[]> {
  const twice = outputs.find((output, i) => outputs.indexOf(output) !== i);
  if (twice !== undefined) throw usageError(`two of the presets would write ${twice}`);
  for (const output of force || resume ? [] : outputs)
    if (await stat(output).catch(() => null))
      throw new CommandError('target-exists', 'it is there already', { where: output, hint: '--force replaces it' });
  return outputs;
}

function lines(argument: string, summary: string, rows: Row[], { terminal }: Context): string[] {
  const { out: colors, columns } = terminal;
  const error = ({ report }: Row) => {
    const share = weightError(report);
    return share === null ? '' : percent(share);
  };
  const [first] = rows;
  return [
    `${colors.bold(printable(argument))}  ${colors.dim(summary)}`,
    '',
    ...table(
      rows,
      [
        { title: 'preset', cell: ({ preset }) => preset },
        { title: 'output', cell: ({ output }) => output },
        { title: 'size', align: 'right', cell: ({ report }) => bytesText(report.totals.bytesAfter) },
        {
          title: 'of source',
          align: 'right',
          cell: ({ report: { totals } }) => shareText(totals.bytesAfter, totals.bytesBefore),
          spare: 1,
        },
        {
          title: 'bits per weight',
          align: 'right',
          cell: ({ report: { totals } }) => totals.bitsPerWeight.toFixed(2),
          spare: 3,
        },
        { title: 'weights off by', align: 'right', cell: error, spare: 4 },
        { title: 'time', align: 'right', cell: ({ report }) => durationText(report.durationMs), spare: 2 },
      ],
      { colors, columns },
    ),
    ...(first && first.load.length > 0 ? ['', 'to load the first', ...first.load.map((line) => `  ${line}`)] : []),
  ];
}

export async function quantizeSeveral(
  context: Context,
  argument: string,
  options: QuantizeOptions,
  presets: string[],
): Promise<Outcome> {
  return await withInputs(context, argument, options, presets, async ({ configs, ...inputs }) => {
    const { quantizer, model, choices } = inputs;
    const { output: folder = '.' } = options;
    const names = presets.map((preset, i) =>
      usualOutput(model, quantizer.plan(model, configs[i] ?? preset, choices), argument, { ...options, preset }),
    );
    const outputs = await outputsOf(
      names.map((name) => join(folder, name)),
      options,
    );
    await checkReportPath(options, outputs);
    await mkdir(folder, { recursive: true });
    const rows: Row[] = [];
    try {
      for (const [i, preset] of presets.entries()) {
        const output = outputs[i] ?? preset;
        rows.push({ preset, ...(await runInto(inputs, configs[i] ?? preset, output, options, context)) });
      }
    } catch (error) {
      for (const { output } of rows) err.write(`finished before: ${printable(output)}\n`);
      throw error;
    }
    const document = { runs: rows.map(({ preset, report, output }) => ({ preset, ...report, output })) };
    if (options.report !== undefined) await writeReport(options.report, document);
    return { document, lines: lines(argument, modelSummary(model), rows, context) };
  });
}
