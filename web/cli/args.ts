/** Command-line options that several commands share, and checks of their values. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  type OnnxOptions,
  type OutputFormat,
  type OutputOptions,
  outputFormats,
  type QuantizerOptions,
  type ShardPart,
} from '../lib/node.js';
import { CommandError } from './failure.js';

/** The library's limit: more are a typo. */
const kMaxThreads = 256;

/** `--layer GLOB=PRESET`. */
export interface LayerChoice {
  glob: string;
  preset: string;
}

/** Options for how tensors are quantized. */
export interface ConfigOptions {
  format?: OutputFormat;
  preset?: string;
  config?: string;
  exclude?: string[];
  layer?: LayerChoice[];
  layerType?: LayerChoice[];
  pure?: boolean;
}

/** Options for resources of a run. */
export interface ResourceOptions {
  threads?: number;
  memory?: number;
}

/** The same in the library's terms; omitted options get its defaults. */
export function quantizerOptions({ threads, memory }: ResourceOptions): QuantizerOptions {
  return {
    ...(threads !== undefined && { threads }),
    ...(memory !== undefined && { memoryBudgetBytes: memory }),
  };
}

/** Options of commands that write a report. */
export interface ReportOptions {
  report?: string;
  force?: boolean;
}

/** A count of workers, 0 = none. */
function parseThreads(text: string): number {
  const threads = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(threads <= kMaxThreads)) throw new InvalidArgumentError(`It must be a whole number from 0 to ${kMaxThreads}.`);
  return threads;
}

const kFactors: Record<string, number> = {
  '': 1,
  b: 1, // bytes
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
};

/** Bytes of `256M`, `1GiB`, `1.5G`, `500MB` or `268435456`: K, M, G and KiB, MiB, GiB are powers of 1024, kB, MB, GB of 1000. */
export function parseSize(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
  const factor = kFactors[unit.toLowerCase()];
  const bytes = number === '' || factor === undefined ? Number.NaN : Math.round(Number(number) * factor);
  if (!Number.isSafeInteger(bytes) || bytes <= 0) {
    throw new InvalidArgumentError('It must be a size such as 256M, 1GiB, 500MB or a number of bytes.');
  }
  return bytes;
}

function parseAccuracyLevel(text: string): NonNullable<OnnxOptions['accuracyLevel']> {
  const level = ([0, 1, 2, 3, 4] as const).find((value) => String(value) === text);
  if (level === undefined) throw new InvalidArgumentError('It must be a number from 0 to 4.');
  return level;
}

/** `I/N`: part I of N, counted from 1. */
export function parseShards(text: string): ShardPart {
  const [, part = '', of = ''] = /^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? [];
  if (of === '' || Number(part) < 1 || Number(part) > Number(of))
    throw new InvalidArgumentError('It must be PART/PARTS such as 1/8; parts count from 1: add 1 to an index from 0.');
  return { part: Number(part), of: Number(of) };
}

/** `GLOB=PRESET`, appended to earlier ones. Splits at the last `=`, so a glob may contain one. */
function parseLayer(text: string, before: LayerChoice[] = []): LayerChoice[] {
  const equals = text.lastIndexOf('=');
  if (equals < 1 || equals + 1 === text.length) {
    throw new InvalidArgumentError(
      'It must be GLOB=PRESET, such as "*.down_proj=int8", or CLASS=PRESET, such as GRU=int8.',
    );
  }
  return [...before, { glob: text.slice(0, equals), preset: text.slice(equals + 1) }];
}

export function parsePattern(text: string, before: string[] = []): string[] {
  if (text === '') throw new InvalidArgumentError('It must be a layer name or a glob such as "*.down_proj".');
  return [...before, text];
}

export function addOutputOptions(command: Command): Command {
  return command
    .option('--json', 'print one JSON document on stdout, nothing else')
    .option('--quiet', 'no progress or remarks on stderr')
    .option('--no-color', 'no colours (NO_COLOR does the same)');
}

/** `several`: what the command does with a list of presets; '' if it takes one. */
export function addConfigOptions(command: Command, several = ''): Command {
  const preset = `ready-made config; see: wasmquant config presets${several}`;
  return command
    .addOption(new Option('-p, --preset <name>', preset).conflicts('config'))
    .option('-c, --config <file>', 'config file (JSON, in the format of AMD Quark); - reads stdin')
    .option(
      '-x, --exclude <glob>',
      'do not quantize these layers, or layers of a class or operator such as Conv1d or Gemm (repeatable)',
      parsePattern,
    )
    .option(
      '-l, --layer <glob=preset>',
      'another preset for these layers, or none (repeatable, first match wins)',
      parseLayer,
    )
    .option(
      '--layer-type <class=preset>',
      'another preset, or none, for layers of a class such as GRU, LSTM, Embedding or Conv2d (repeatable)',
      parseLayer,
    )
    .option('--pure', "GGUF recipes: the recipe's main type in every layer, as llama-quantize --pure");
}

export function addFormatOption(command: Command): Command {
  return command.addOption(
    new Option(
      '-f, --format <name>',
      'output format (default: the format of GGUF and ONNX models, gguf for its recipes, otherwise compressed-tensors)',
    ).choices(outputFormats),
  );
}

/** Options of ONNX outputs. */
export interface OnnxFlags {
  qdq?: boolean;
  accuracyLevel?: OnnxOptions['accuracyLevel'];
  externalData?: boolean;
  constantInputs?: boolean;
}

export function addOnnxOptions(command: Command): Command {
  return command
    .option(
      '--qdq',
      'ONNX: DequantizeLinear before every quantized weight; session.qdq_matmulnbits_accuracy_level decides how it computes',
    )
    .addOption(
      new Option(
        '--accuracy-level <n>',
        'ONNX: precision that MatMulNBits may compute in, for 8 bits, too: 1 float32, 2 float16, 3 bfloat16, 4 int8',
      ).argParser(parseAccuracyLevel),
    )
    .option('--external-data', 'ONNX: weights in a separate file, <output>_data (default: above 1.5 GiB)')
    .option(
      '--constant-inputs',
      'ONNX: quantize weights that are also inputs of the graph; callers can no longer set them',
    );
}

/** Options of GGUF outputs. */
export interface GgufFlags {
  imatrix?: string;
  shardSize?: number;
  mmproj?: boolean;
}

export function addGgufOptions(command: Command): Command {
  return command
    .option('--imatrix <file>', 'GGUF: importance matrix of llama-imatrix or of wasmquant imatrix')
    .option(
      '--shard-size <size>',
      'GGUF: split the output into files of this size, such as 500MB, in a folder',
      parseSize,
    )
    .option('--mmproj', 'GGUF: the file for images that llama.cpp takes as --mmproj, in place of the language model');
}

/** Options that include what presets skip. */
export interface InclusionFlags {
  includeTowers?: boolean;
  includeExperts?: boolean;
  excludeExperts?: boolean;
}

export function addInclusionOptions(command: Command): Command {
  return command
    .option('--include-towers', 'also quantize vision and audio towers and projectors, which presets skip')
    .addOption(
      new Option(
        '--include-experts',
        'also quantize experts that only vLLM can read (those that transformers reads are quantized anyway)',
      ).conflicts('excludeExperts'),
    )
    .option('--exclude-experts', 'leave the experts of a mixture as they are');
}

/** The same in the library's terms. */
export function inclusions({ includeTowers, includeExperts, excludeExperts }: InclusionFlags) {
  const experts = includeExperts ? ('include' as const) : excludeExperts ? ('exclude' as const) : undefined;
  return { ...(includeTowers && { includeTowers }), ...(experts && { experts }) };
}

/** The other arguments of `plan` and `quantizeModel`. Errors: source-invalid. */
export async function planOptions(
  options: OnnxFlags & GgufFlags & InclusionFlags & { format?: OutputFormat },
): Promise<OutputOptions> {
  const { format, qdq, accuracyLevel, externalData, constantInputs, imatrix, shardSize, mmproj } = options;
  return {
    ...(format && { format }),
    ...inclusions(options),
    gguf: {
      ...(imatrix !== undefined && { imatrix: await bytesOfFile(imatrix), imatrixName: basename(imatrix) }),
      ...(shardSize !== undefined && { shardBytes: shardSize }),
      ...(mmproj && { mmproj }),
    },
    onnx: {
      ...(qdq && { qdq }),
      ...(accuracyLevel !== undefined && { accuracyLevel }),
      ...(externalData && { externalData }),
      ...(constantInputs && { constantInputs }),
    },
  };
}

async function bytesOfFile(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError('source-invalid', `cannot be read: ${reason}`, { where: path });
  }
}

export function addResourceOptions(command: Command): Command {
  return command
    .option('-t, --threads <n>', 'workers; 0 = none (default: one per core, at most 8)', parseThreads)
    .option('-m, --memory <size>', 'memory for all workers together, such as 256M or 2GiB (default: 1GiB)', parseSize);
}

export function addReportOptions(command: Command, replaces: string): Command {
  return command
    .option('-r, --report <file>', 'also write the report as JSON to this file')
    .option('--force', `replace ${replaces}`);
}
