// The readable and writable formats, from the core's tables (generated/formats.ts).

import { type InputFormat, type OutputFormat, table } from '../generated/formats.js';
import { check } from './arguments.js';

export type { InputFormat, OutputFormat };

/** Properties of a readable format. */
export interface InputFormatInfo {
  /** Display name: `GGUF`. */
  title: string;
  /** File extensions, `.gguf`; the usual one first. */
  extensions: readonly string[];
  /** Extensions of companion files that only have values. */
  dataExtensions: readonly string[];
  /** A graph of operators: a runtime computes layers, and outputs keep the graph. */
  hasGraph: boolean;
  /** Tensor names and head order are llama.cpp's. */
  hasGgmlNames: boolean;
  /** Its metadata replaces config.json. */
  carriesConfig: boolean;
  /** config.json and tokenizer next to the weights belong to the model. */
  hasSiblingFiles: boolean;
  /** Matrices get `.weight` behind their name if it does not tell what they are. */
  addsWeightSuffix: boolean;
}

/** Properties of a writable format. */
export interface OutputFormatInfo {
  /** The runtimes' name for it. */
  title: string;
  /** When to choose it, one sentence; empty for formats for experts. */
  description: string;
  /** pip packages that transformers needs to load it; empty if transformers does not. */
  packages: string;
  /** What reads it, one sentence, or empty. */
  note: string;
  /** File format. */
  container: InputFormat;
  /** Formats of possible source models. */
  sources: readonly InputFormat[];
  /** Takes llama.cpp recipes and no other configs. */
  takesRecipes: boolean;
  /** Files can be split at a requested size. */
  splitsBySize: boolean;
  /** Each file is a complete model, unless it is split; else outputs match the model's files. */
  isWholeFile: boolean;
  /** config.json, tokenizer and the like are written next to the weights. */
  hasSiblingFiles: boolean;
  /** Weights load only with `quantization_config` in config.json. */
  needsConfigBlock: boolean;
  /** Values of `scale_format` whose weights loaders convert to bfloat16, regardless of the model's dtype. */
  bfloat16Scales: readonly string[];
}

/** All formats by name. */
export const formats: {
  /** Readable formats. */
  readonly inputs: Readonly<Record<InputFormat, InputFormatInfo>>;
  /** Writable formats. */
  readonly outputs: Readonly<Record<OutputFormat, OutputFormatInfo>>;
} = table;

/** Ends of ONNX file names by which transformers.js finds a dtype: `model_q4.onnx`. */
export const onnxSuffixes: readonly string[] = table.onnxSuffixes;

/** Names of the readable formats. */
export const inputFormats = Object.keys(table.inputs) as readonly InputFormat[];
/** Names of the writable formats. */
export const outputFormats = Object.keys(table.outputs) as readonly OutputFormat[];

/** Matches names that end in one of these, in any case. */
const endingIn = (extensions: readonly string[]) =>
  new RegExp(`(${extensions.map((text) => text.replace('.', '\\.')).join('|')})$`, 'i');

/** Matches names of readable files. */
export const weightFilePattern = endingIn(inputFormats.flatMap((name) => formats.inputs[name].extensions));

/** The format of a file name's extension, or null. */
export function inputFormatOf(fileName: string): InputFormat | null {
  check(fileName, 'string', 'fileName');
  return inputFormats.find((name) => endingIn(formats.inputs[name].extensions).test(fileName)) ?? null;
}

/** The formats whose files have that extension. */
export function outputFormatsOf(fileName: string): OutputFormat[] {
  const container = inputFormatOf(fileName);
  return outputFormats.filter((name) => formats.outputs[name].container === container);
}

/** Whether an output is a graph, which may go into a folder that has other graphs of the model. */
export const writesGraph = (model: InputFormat, output?: OutputFormat): boolean =>
  formats.inputs[output === undefined ? model : (formats.outputs[output]?.container ?? model)].hasGraph;
