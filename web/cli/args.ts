/** Options that several commands share, once parsed, and the same in the library's terms. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { OnnxOptions, OutputFormat, OutputOptions, QuantizerOptions } from '../lib/node.js';
import { CommandError } from './failure.js';

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
  /** Of small models (program/small.ts); no option of the command line. */
  workersAfterMs?: number;
}

/** The same in the library's terms; omitted options get its defaults. */
export function quantizerOptions({ threads, memory, workersAfterMs }: ResourceOptions): QuantizerOptions {
  return {
    workerUrl: new URL('./worker_node.cjs', import.meta.url),
    ...(threads !== undefined && { threads }),
    ...(workersAfterMs !== undefined && { workersAfterMs }),
    ...(memory !== undefined && { memoryBudgetBytes: memory }),
  };
}

/** Options of commands that write a report. */
export interface ReportOptions {
  report?: string;
  force?: boolean;
}

/** Options of ONNX outputs. */
export interface OnnxFlags {
  qdq?: boolean;
  accuracyLevel?: OnnxOptions['accuracyLevel'];
  externalData?: boolean;
  constantInputs?: boolean;
}

/** Options of GGUF outputs. */
export interface GgufFlags {
  imatrix?: string;
  shardSize?: number;
  mmproj?: boolean;
}

/** Options that include what presets skip. */
export interface InclusionFlags {
  includeTowers?: boolean;
  includeExperts?: boolean;
  excludeExperts?: boolean;
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
