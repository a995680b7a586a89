/** The command line: its commands, what their options are called, and what is wrong with those that were typed. */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import type { Failure } from '../failure.js';
import { err, out } from '../streams.js';
import { terminalFor } from '../terminal.js';
import { addAuto } from './auto.js';
import { addCompare } from './compare.js';
import { addConfig } from './config.js';
import { addCurve } from './curve.js';
import { addEvaluate } from './evaluate.js';
import { addExplain } from './explain.js';
import { addFormats } from './formats.js';
import { addGenerate } from './generate.js';
import { addImatrix } from './imatrix.js';
import { addInspect } from './inspect.js';
import { addMergeIndex } from './merge_index.js';
import { addPlan } from './plan.js';
import { addQuantize } from './quantize.js';
import { start } from './start.js';

const kExitUsage = 2;

const kExamples = `
Examples:
  wasmquant inspect ./llama
  wasmquant plan ./llama --preset int4_wo_128
  wasmquant quantize ./llama -o ./llama-int4 --preset int4_wo_128 --layer "*.down_proj=int8"
  wasmquant quantize ./llama -o llama-q4.gguf --preset q4_k_m --imatrix llama.imatrix.gguf
  wasmquant quantize model.onnx -o model_q4.onnx --preset int4_wo_32
  wasmquant quantize ./llama -o ./llama-int4 --preset int4_wo_128 --shards 1/8
  wasmquant merge-index ./llama-int4
  wasmquant compare ./llama ./llama-int4
  wasmquant curve ./llama --for llama.cpp --text ./held-out.txt
  wasmquant auto ./llama --tokens ./tokens.safetensors --target-bits 4.5 -o auto.json
  wasmquant evaluate ./llama-int4 --tokens ./tokens.safetensors
  wasmquant generate ./llama-int4 --prompt "Once upon a time"

A model is a file, a folder (config.json and shards), an index file, or an http(s) URL.
Sizes are shown in powers of 1000. Exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted.`;

/** Next to dist/, in the repository and in the published package. */
function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

/** Commander's messages: help and version go to stdout, errors to stderr, or all into the JSON document. */
function usageFailure(error: CommanderError, program: Command): Failure {
  const named = error.code === 'commander.help' ? 'no command given' : error.message;
  const [message = '', ...rest] = named.replace(/^error: /, '').split('\n');
  const suggestion = /^\((.*)\)$/.exec(rest.join(' ').trim())?.[1]?.replace(/^D/, 'd');
  const hint = suggestion ?? `${program.name()} --help lists commands and options`;
  return { code: 'usage', message, hint };
}

/** `help`: what is shown instead of the error where no command is named. */
async function refuse(error: CommanderError, program: Command, help: string): Promise<void> {
  process.exitCode = kExitUsage;
  // The options were not parsed, so search for the raw flags.
  const flags = process.argv.slice(2);
  const terminal = terminalFor({ json: flags.includes('--json'), color: !flags.includes('--no-color') });
  if (help && !terminal.json) err.write(help);
  else (await import('../execute.js')).printFailure(usageFailure(error, program), terminal);
}

export async function main(): Promise<void> {
  const program = new Command('wasmquant');
  let helped = '';
  program
    .description('Quantizes neural-network weights in WebAssembly, with configs in the format of AMD Quark.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .addHelpText('after', kExamples)
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => out.write(text),
      writeErr: (text) => {
        helped += text;
      },
      outputError: () => {},
      getOutHelpWidth: () => out.columns as number,
      getErrHelpWidth: () => err.columns as number,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride();
  for (const add of [
    addInspect,
    addPlan,
    addQuantize,
    addMergeIndex,
    addCompare,
    addCurve,
    addEvaluate,
    addGenerate,
    addAuto,
    addImatrix,
    addConfig,
    addFormats,
    addExplain,
  ])
    add(program, start);
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) (await import('../execute.js')).printUnexpected(error);
    else if (error.exitCode !== 0) await refuse(error, program, helped);
  }
}
