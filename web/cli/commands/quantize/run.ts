/** The inputs of `wasmquant quantize`, opened once, and a run with one config. */
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { formats, outputFormatsOf, weightFilePattern } from '../../../lib/internal.js';
import type {
  Config,
  Model,
  OutputFormat,
  OutputOptions,
  Plan,
  QuantizeModelOptions,
  Quantizer,
  RunReport,
  ShardPart,
} from '../../../lib/node.js';
import { hasModules, loadTexts } from '../../../present/runtimes/load_lines.js';
import {
  type ConfigOptions,
  type GgufFlags,
  type InclusionFlags,
  type OnnxFlags,
  planOptions,
  quantizerOptions,
  type ReportOptions,
  type ResourceOptions,
} from '../../args.js';
import { configFor } from '../../config_source.js';
import { CommandError, usageError } from '../../failure.js';
import { type ModelFlags, openModel } from '../../model_source.js';
import type { Context } from '../../outcome.js';
import { ProgressBar } from '../../progress.js';
import { startQuantizer } from '../../quantizer.js';
import { checkReportPath, modelPaths } from '../../report_file.js';
import { err } from '../../streams.js';
import { isTextFile, openText } from '../../token_source.js';
import { headlineLines } from '../plan.js';
import { type FinishedRun, specsText } from './report_lines.js';

export interface QuantizeOptions
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
  text?: string;
  measureSpeed?: boolean;
  card?: boolean;
}

/** Of 256 tokens each; all their activations stay in memory. */
const kCalibrationSequences = 32;

/** What every run of the command shares. */
export interface Inputs {
  quantizer: Quantizer;
  model: Model;
  /** What `--source` names. */
  source: Model | null;
  choices: OutputOptions;
  calibration: Partial<QuantizeModelOptions>;
}

/** The config with the algorithms that lose least; a preset's name and a file's text become objects first. */
function best(quantizer: Quantizer, config: Config): object {
  const isNamed = typeof config === 'object' || quantizer.presets().some(({ name }) => name === config);
  return quantizer.presetConfig(isNamed ? config : quantizer.parseConfig(config).config, { best: true });
}

/** What --preset or --config names, with --best. */
export async function configOf(quantizer: Quantizer, options: QuantizeOptions, signal: AbortSignal): Promise<Config> {
  const chosen = await configFor(quantizer, options, signal);
  return options.best ? best(quantizer, chosen) : chosen;
}

/** Without -o: the file's own name, or a folder called after model and scheme, where the command runs. */
export function usualOutput(model: Model, { format, files }: Plan, argument: string, options: QuantizeOptions): string {
  const [file] = files;
  if (file && formats.outputs[format].isWholeFile && model.parts.length === 0) return basename(file.name);
  const last =
    argument
      .replace(/[?#].*$/, '')
      .replace(/[/\\]+$/, '')
      .split(/[/\\]/)
      .at(-1) ?? '';
  const name = last === '' || /^\.+$/.test(last) ? 'model' : last.replace(weightFilePattern, '');
  return `${name}-${nameOf(options)}`;
}

const nameOf = ({ preset, config }: Pick<QuantizeOptions, 'preset' | 'config'>) =>
  preset ?? basename(config ?? 'quantized').replace(/\.json$/i, '');

/** The preset or config, as a card names it. */
export const schemeOf = (options: QuantizeOptions) => `${nameOf(options)}${options.best ? ' --best' : ''}`;

/** Reads the configs of the runs, then opens what the runs read, and closes it after `use`. */
export async function withInputs<C, T>(
  { signal }: Context,
  argument: string,
  options: QuantizeOptions,
  configsOf: (quantizer: Quantizer) => Promise<C>,
  use: (inputs: Inputs, configs: C) => Promise<T>,
): Promise<T> {
  const { config: configFile, imatrix, calibration: dataFile, calibrationText: textFile } = options;
  await checkReportPath(options, [argument, options.output, configFile, imatrix, textFile, dataFile]);
  await using quantizer = await startQuantizer(quantizerOptions(options));
  const [named, ...others] = outputFormatsOf(options.output ?? '');
  if (named && others.length === 0) options.format ??= named;
  if (options.calibration !== undefined && (await isTextFile(options.calibration))) {
    options.calibrationText = options.calibration;
    delete options.calibration;
  }
  if (options.best && options.calibration === undefined && options.calibrationText === undefined)
    throw usageError('--best needs a calibration text', 'add --calibration FILE.txt');
  const configs = await configsOf(quantizer);
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
  const inputs = {
    quantizer,
    model,
    source,
    choices: { ...(await planOptions(options)), signal },
    calibration: {
      ...(calibration && { calibration: source ? { tokens: calibration, source } : calibration }),
      ...(text && { calibration: { tokens: text, ...(source && { source }) } }),
    },
  };
  return await use(inputs, configs);
}

/** How to load the output, a folder or a file. */
async function loadLines(
  model: Model,
  report: RunReport,
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

/** Quantizes into `output`. */
export async function runInto(
  { quantizer, model, choices, calibration }: Inputs,
  config: Config,
  output: string,
  options: QuantizeOptions,
  { terminal, signal }: Context,
): Promise<FinishedRun> {
  if (terminal.live) {
    const plan = await quantizer.plan(model, config, choices);
    const lines = [terminal.err.dim(specsText(plan.tensors)), ...headlineLines(plan, terminal.err)];
    err.write(`${lines.filter(Boolean).join('\n')}\n`);
  }
  const bar = new ProgressBar(terminal);
  let report: RunReport;
  try {
    report = await quantizer.quantizeModel(model, config, {
      target: output,
      ...choices,
      overwrite: options.force === true,
      resume: options.resume === true,
      ...calibration,
      ...(options.shards && { shards: options.shards }),
      signal,
      onProgress: bar.update,
    });
  } catch (error) {
    throw options.resume && signal.aborted ? resumable(error) : error;
  } finally {
    bar.stop();
  }
  const isFolder = (await stat(output)).isDirectory();
  const load = await loadLines(model, report, { output, isFolder, isProjector: options.mmproj === true });
  return { report, output, isFolder, load };
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
