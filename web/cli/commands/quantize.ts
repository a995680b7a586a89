/** `wasmquant quantize <model> -o <out>`: runs, then reports sizes, worst layers, files, and how to load them. */
import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Command, Option } from 'commander';
import type { Model, OutputFormat, Plan, QuantizeModelOptions, Quantizer, Report, ShardPart } from '../../lib/node.js';
import { bestConfig, createQuantizer, formats, outputFormatsOf, weightFilePattern } from '../../lib/node.js';
import { otherDiagnostics } from '../../present/output_size.js';
import { hasModules, loadTexts } from '../../present/runtimes/load_lines.js';
import { actionText } from '../../present/spec_text.js';
import { bytesText, durationText, plural } from '../../present/units.js';
import {
  addConfigOptions,
  addFormatOption,
  addGgufOptions,
  addInclusionOptions,
  addOnnxOptions,
  addOutputOptions,
  addReportOptions,
  addResourceOptions,
  type ConfigOptions,
  type GgufFlags,
  type InclusionFlags,
  type OnnxFlags,
  parseShards,
  planOptions,
  quantizerOptions,
  type ReportOptions,
  type ResourceOptions,
} from '../args.js';
import { configFor } from '../config_source.js';
import { coverageLines } from '../coverage.js';
import { diagnosticLines } from '../diagnostics.js';
import { CommandError, usageError } from '../failure.js';
import { kModelArgument, kSource, kStripPrefix, type ModelFlags, modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome, Run } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { checkReportPath, modelPaths, writeReport } from '../report_file.js';
import { err } from '../streams.js';
import { table } from '../tables.js';
import type { Colors } from '../terminal.js';
import { printable } from '../terminal.js';
import { isTextFile, openText } from '../token_source.js';
import { errorColumns, isExact, worstFirst } from './compare.js';
import { headlineLines } from './plan.js';

interface QuantizeOptions
  extends ConfigOptions,
    OnnxFlags,
    GgufFlags,
    InclusionFlags,
    ResourceOptions,
    ReportOptions,
    ModelFlags {
  output?: string;
  format?: OutputFormat;
  calibration?: string;
  calibrationText?: string;
  source?: string;
  best?: boolean;
  shards?: ShardPart;
  resume?: boolean;
}

const kWorstShown = 5;
/** Of 256 tokens each; all their activations stay in memory. */
const kCalibrationSequences = 32;

/** The config with the algorithms that lose least; a preset's name and a file's text become objects first. */
function best(quantizer: Quantizer, config: string | object): object {
  if (typeof config === 'object') return bestConfig(config);
  const preset = quantizer.presets().find(({ name }) => name === config);
  return bestConfig(preset?.config ?? quantizer.parseConfig(config).config);
}

/** `24 × int4 per_group 32, 1 × int8 per_channel`, the most frequent first. */
function specsText(tensors: Plan['tensors'] | Report['tensors']): string {
  const counts = new Map<string, number>();
  for (const tensor of tensors) {
    if (tensor.action === 'quantize') counts.set(actionText(tensor), (counts.get(actionText(tensor)) ?? 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return sorted.map(([text, count]) => `${count} × ${printable(text)}`).join(', ');
}

function fileLines(output: string, isFolder: boolean, report: Report, colors: Colors): string[] {
  // External data of an ONNX model is next to it.
  const folder = isFolder ? output : dirname(output);
  const files = report.files.map(({ name, bytes }) => ({
    path: isFolder || name.endsWith('_data') ? join(folder, name) : output,
    bytes,
  }));
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return table(
    files,
    [
      { title: 'file', cell: (file) => file.path },
      { title: 'size', align: 'right', cell: (file) => bytesText(file.bytes), paint: () => colors.dim },
    ],
    { colors, columns: Number.POSITIVE_INFINITY },
  );
}

/** The next steps after one part of a run. */
function partLines({ shards, files }: Report, output: string): string[] {
  if (!shards) return [];
  const wrote = files.length > 0 ? plural(files.length, 'shard') : 'no shard: there are more parts than shards';
  return [
    '',
    `part ${shards.part} of ${shards.of}: ${wrote}; when all parts are done:`,
    `  wasmquant merge-index ${printable(output)}`,
  ];
}

/** How to load the output, a folder or a file. */
async function loadLines(
  model: Model,
  report: Report,
  { output, isFolder, isProjector }: { output: string; isFolder: boolean; isProjector: boolean },
): Promise<string[]> {
  const written = {
    model,
    report,
    isFolder,
    hasModules: await hasModules(model),
    isProjector,
    pathOf: (file?: string) => (isFolder && file !== undefined ? join(output, file) : output),
  };
  return report.shards ? [] : loadTexts(formats, written).flatMap(({ lines }) => lines);
}

function reportLines(
  argument: string,
  model: Model,
  report: Report,
  options: QuantizeOptions & { output: string },
  { isFolder, load }: { isFolder: boolean; load: string[] },
  { terminal }: Context,
): string[] {
  const { out: colors, columns } = terminal;
  const { bytesBefore, quantized } = report.totals;
  const worst = worstFirst(report)
    .filter((tensor) => tensor.action === 'quantize' && !isExact(tensor))
    .slice(0, kWorstShown);
  const rate = report.durationMs > 0 ? `, ${bytesText((bytesBefore / report.durationMs) * 1000)}/s` : '';
  const where = report.threads > 0 ? plural(report.threads, 'worker') : 'no workers';
  const diagnostics = [...model.diagnostics, ...otherDiagnostics(report.diagnostics)];
  return [
    `${colors.bold(printable(argument))} → ${colors.bold(printable(options.output))}  ${colors.dim(`${modelSummary(model)} → ${report.format}`)}`,
    '',
    ...headlineLines(report, colors),
    ...(quantized > 0 ? [specsText(report.tensors)] : []),
    ...coverageLines(report.totals.coverage, { colors, columns }),
    colors.dim(`done in ${durationText(report.durationMs)}${rate}, ${where}`),
    ...(report.resumedFiles ? [colors.dim(`${plural(report.resumedFiles, 'file')} of an interrupted run reused`)] : []),
    ...(worst.length > 0
      ? [
          '',
          `${plural(worst.length, 'tensor')} with the lowest SQNR`,
          ...table(worst, errorColumns(colors), { colors, columns, indent: 2 }),
        ]
      : []),
    '',
    ...fileLines(options.output, isFolder, report, colors),
    ...(options.report !== undefined ? [colors.dim(`report of every tensor: ${printable(options.report)}`)] : []),
    ...partLines(report, options.output),
    ...(load.length > 0 ? ['', 'to load it', ...load.map((line) => `  ${line}`)] : []),
    ...(diagnostics.length > 0 ? ['', ...diagnosticLines(diagnostics, colors)] : []),
  ];
}

/** Without -o: the file's own name, or a folder called after model and scheme, where the command runs. */
function usualOutput(
  model: Model,
  { format, files }: Plan,
  argument: string,
  { preset, config }: QuantizeOptions,
): string {
  const [file] = files;
  if (file && formats.outputs[format].isWholeFile && model.parts.length === 0) return basename(file.name);
  const last =
    argument
      .replace(/[?#].*$/, '')
      .replace(/[/\\]+$/, '')
      .split(/[/\\]/)
      .at(-1) ?? '';
  const name = last === '' || /^\.+$/.test(last) ? 'model' : last.replace(weightFilePattern, '');
  const scheme = preset ?? basename(config ?? 'quantized').replace(/\.json$/i, '');
  return `${name}-${scheme}`;
}

async function quantize(context: Context, argument: string, options: QuantizeOptions): Promise<Outcome> {
  const { terminal, signal } = context;
  const { config: configFile, imatrix, calibration: dataFile, calibrationText: textFile } = options;
  await checkReportPath(options, [argument, options.output, configFile, imatrix, textFile, dataFile]);
  await using quantizer = await createQuantizer(quantizerOptions(options));
  const [named, ...others] = outputFormatsOf(options.output ?? '');
  if (named && others.length === 0) options.format ??= named;
  if (options.calibration !== undefined && (await isTextFile(options.calibration))) {
    options.calibrationText = options.calibration;
    delete options.calibration;
  }
  if (options.best && options.calibration === undefined && options.calibrationText === undefined)
    throw usageError('--best needs a calibration text', 'add --calibration FILE.txt');
  const chosen = await configFor(quantizer, options, signal);
  const config = options.best ? best(quantizer, chosen) : chosen;
  await using model = await openModel(quantizer, argument, signal, options);
  await using calibration =
    options.calibration === undefined ? null : await openModel(quantizer, options.calibration, signal);
  await using source = options.source === undefined ? null : await openModel(quantizer, options.source, signal);
  const { calibrationText } = options;
  const text =
    calibrationText === undefined
      ? null
      : { ...(await openText(source ? [source, model] : [model], calibrationText)), sequences: kCalibrationSequences };
  await checkReportPath(options, [
    ...(await modelPaths(argument, model)),
    ...(calibration ? await modelPaths(options.calibration ?? '', calibration) : []),
  ]);
  const choices = await planOptions(options);
  const output = options.output ?? usualOutput(model, quantizer.plan(model, config, choices), argument, options);
  await checkReportPath(options, [output]);
  if (terminal.live) {
    const plan = quantizer.plan(model, config, choices);
    const lines = [terminal.err.dim(specsText(plan.tensors)), ...headlineLines(plan, terminal.err)];
    err.write(`${lines.filter(Boolean).join('\n')}\n`);
  }

  const bar = new ProgressBar(terminal);
  const run: QuantizeModelOptions = {
    target: output,
    ...choices,
    overwrite: options.force === true,
    resume: options.resume === true,
    ...(calibration && { calibration: source ? { tokens: calibration, source } : calibration }),
    ...(text && { calibration: { tokens: text, ...(source && { source }) } }),
    ...(options.shards && { shards: options.shards }),
    signal,
    onProgress: bar.update,
  };
  let report: Report;
  try {
    report = await quantizer.quantizeModel(model, config, run);
  } catch (error) {
    throw options.resume && signal.aborted ? resumable(error) : error;
  } finally {
    bar.stop();
  }
  if (options.report !== undefined) await writeReport(options.report, report);
  const isFolder = (await stat(output)).isDirectory();
  const load = await loadLines(model, report, { output, isFolder, isProjector: options.mmproj === true });
  return {
    document: { ...report, output },
    lines: reportLines(argument, model, report, { ...options, output }, { isFolder, load }, context),
  };
}

/** An interruption after which the same command can continue. */
function resumable(error: unknown): unknown {
  if (!(error instanceof CommandError)) return error;
  const message = `${error.code}; files that are complete are kept`;
  return new CommandError(error.code, message, {
    ...error.details,
    hint: 'run the same command to continue from there',
  });
}

export function addQuantize(program: Command, run: Run): void {
  const command = program
    .command('quantize')
    .description('quantize the weights of a model and copy the rest of its folder')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .option(
      '-o, --output <path>',
      'folder, or a single file such as out.safetensors or out.onnx (default: named after model and scheme, here)',
    );
  addConfigOptions(addGgufOptions(addOnnxOptions(addInclusionOptions(addFormatOption(command)))))
    .addOption(
      new Option(
        '--calibration <file>',
        'text (.txt, .md), or a safetensors file with token ids [sequences, length], for algorithms, static inputs and the importance of GGUF types, or with activations <layer>.input, <layer>.output',
      ).conflicts('calibrationText'),
    )
    .addOption(kSource)
    .option('--calibration-text <file>', "text instead of token ids, through the model's tokenizer.json")
    .option('--best', 'the most accurate algorithms for this size: awq, gptq, least squares (needs --calibration)')
    .option('--resume', 'keep the finished files of an interrupted run into a folder and continue from there')
    .addOption(
      new Option(
        '--shards <part/parts>',
        'write only this part of the output shards, such as 1/8; when all parts are done: wasmquant merge-index',
      )
        .argParser(parseShards)
        .conflicts('resume'),
    );
  addReportOptions(addResourceOptions(command), 'existing output and report');
  addOutputOptions(command).action((model: string, options: QuantizeOptions) =>
    run(options, (context) => quantize(context, model, options)),
  );
}
