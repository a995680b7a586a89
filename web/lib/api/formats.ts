// The formats that are read and written, from the tables of the core (generated/formats.ts, made by the build).

import { table } from '../generated/formats.js';

/** A file format that can be opened. */
export type InputFormat = keyof typeof table.inputs;
/** A format that can be written. */
export type OutputFormat = keyof typeof table.outputs;

/** What is known of a file format that can be opened. */
export interface InputFormatInfo {
  /** As people write it: `GGUF`. */
  title: string;
  /** Of its files, `.gguf`; the usual one first. */
  extensions: readonly string[];
  /** Of files beside them that hold values only. */
  dataExtensions: readonly string[];
  /** Operators stand between the tensors: a runtime computes layers, and outputs are the same graph. */
  hasGraph: boolean;
  /** Tensors are named, and heads ordered, as llama.cpp has them. */
  hasGgmlNames: boolean;
  /** Its metadata says what config.json says of other models. */
  carriesConfig: boolean;
  /** config.json and tokenizer stand beside the weights and belong to the model. */
  hasSiblingFiles: boolean;
  /** Its models can be calibrated block by block. */
  canCalibrate: boolean;
}

/** What is known of a format that can be written. */
export interface OutputFormatInfo {
  /** As its runtimes write it. */
  title: string;
  /** A sentence that helps to choose it; empty: it is for those who know it. */
  description: string;
  /** What pip has to install for transformers to load it; empty: it is loaded by something else. */
  packages: string;
  /** A sentence on what reads it, or empty. */
  note: string;
  /** The format of its files. */
  container: InputFormat;
  /** Formats of the models that it is made of. */
  sources: readonly InputFormat[];
  /** Configs are llama.cpp's recipes; else they never are. */
  takesRecipes: boolean;
  /** Files are cut at a size that is asked for. */
  splitsBySize: boolean;
  /** A file is a model by itself and made in one run; else there is a file for each of the model's, and machines can share them. */
  isWholeFile: boolean;
  /** config.json, tokenizer and the like are written beside the weights. */
  hasSiblingFiles: boolean;
}

/** All formats by name. */
export const formats: {
  /** Those that can be opened. */
  readonly inputs: Readonly<Record<InputFormat, InputFormatInfo>>;
  /** Those that can be written. */
  readonly outputs: Readonly<Record<OutputFormat, OutputFormatInfo>>;
} = table;

/** Names of the formats that can be opened. */
export const inputFormats = Object.keys(table.inputs) as readonly InputFormat[];
/** Names of the formats that can be written. */
export const outputFormats = Object.keys(table.outputs) as readonly OutputFormat[];

/** A pattern of names that end in one of these, `.onnx`, in capitals, too. */
const endingIn = (extensions: readonly string[]) =>
  new RegExp(`(${extensions.map((text) => text.replace('.', '\\.')).join('|')})$`, 'i');

/** Names of files that can be opened. */
export const weightFilePattern = endingIn(inputFormats.flatMap((name) => formats.inputs[name].extensions));

/** The format that the name of a file says, by its extension; null: none that can be opened. */
export function inputFormatOf(fileName: string): InputFormat | null {
  return inputFormats.find((name) => endingIn(formats.inputs[name].extensions).test(fileName)) ?? null;
}

/** The formats whose files have such a name. */
export function outputFormatsOf(fileName: string): OutputFormat[] {
  const container = inputFormatOf(fileName);
  return outputFormats.filter((name) => formats.outputs[name].container === container);
}
