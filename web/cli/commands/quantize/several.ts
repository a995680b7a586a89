/** `--preset q4_k_m,q5_k_m,q8_0`: the model is opened once, and becomes a file or folder for each preset, in one folder. */
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { outputFormatsOf } from '../../../lib/internal.js';
import type { Config, Quantizer } from '../../../lib/node.js';
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
import { checkCard, writeCard } from './card.js';
import { type Measured, measuredColumns, measureOf } from './measure.js';
import type { FinishedRun } from './report_lines.js';
import { configOf, type QuantizeOptions, runInto, schemeOf, usualOutput, withInputs } from './run.js';

type Row = FinishedRun & { preset: string; measured: Measured };

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

/** Throws where two runs would write the same, or one what is there already, before any of them begins. */
async function checkOutputs(outputs: string[], { force, resume, preset }: QuantizeOptions): Promise<void> {
  const twice = outputs.find((output, i) => outputs.indexOf(output) !== i);
  if (twice !== undefined) throw usageError(`two of the presets would write ${twice}`);
  const file = resume && outputs.find((output) => outputFormatsOf(output).length > 0);
  if (file)
    throw usageError(
      `--resume continues in folders, and one of the presets ${preset} becomes the file ${file}`,
      'leave it out: a file appears under its name only when it is complete',
    );
  for (const output of force || resume ? [] : outputs)
    if (await stat(output).catch(() => null))
      throw new CommandError('target-exists', 'it is there already', { where: output, hint: '--force replaces it' });
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
        ...measuredColumns<Row>(),
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
  const { output: folder = '.' } = options;
  const configsOf = async (quantizer: Quantizer) => {
    const configs: { preset: string; config: Config }[] = [];
    for (const preset of presets)
      configs.push({ preset, config: await configOf(quantizer, { ...options, preset }, context.signal) });
    return configs;
  };
  return await withInputs(context, argument, options, configsOf, async (inputs, configs) => {
    const { quantizer, model, choices } = inputs;
    const runs: { preset: string; config: Config; output: string }[] = [];
    for (const { preset, config } of configs) {
      const name = usualOutput(model, await quantizer.plan(model, config, choices), argument, { ...options, preset });
      runs.push({ preset, config, output: join(folder, name) });
    }
    const outputs = runs.map(({ output }) => output);
    await checkOutputs(outputs, options);
    await checkReportPath(options, outputs);
    await checkCard(options, folder);
    const measure = await measureOf(inputs, options, context);
    await mkdir(folder, { recursive: true });
    const rows: Row[] = [];
    try {
      for (const { preset, config, output } of runs)
        rows.push({ preset, ...(await runInto(inputs, config, output, options, context)), measured: {} });
      for (const row of rows) if (measure) row.measured = await measure(row.output);
    } catch (error) {
      for (const { output } of rows) err.write(`finished before: ${printable(output)}\n`);
      throw error;
    }
    const document = {
      runs: rows.map(({ preset, report, output, measured }) => ({ preset, ...report, output, ...measured })),
    };
    if (options.report !== undefined) await writeReport(options.report, document);
    const named = rows.map((row) => ({ ...row, scheme: schemeOf({ ...options, preset: row.preset }) }));
    const card = options.card ? await writeCard(argument, model, folder, named, options.text) : undefined;
    return {
      document: { ...document, ...(card && { card }) },
      lines: [
        ...lines(argument, modelSummary(model), rows, context),
        ...(card ? [`model card: ${printable(card)}`] : []),
      ],
    };
  });
}
