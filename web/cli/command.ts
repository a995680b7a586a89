/**
 * The wasmquant command, in the thread that main.ts starts for it. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 or 143 interrupted.
 * Stdout gets the outcome (text, or one JSON document with --json, also for failures), stderr everything else.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { addAuto } from './commands/auto.js';
import { addCompare } from './commands/compare.js';
import { addConfig } from './commands/config.js';
import { addCurve } from './commands/curve.js';
import { addEvaluate } from './commands/evaluate.js';
import { addExplain } from './commands/explain.js';
import { addFormats } from './commands/formats.js';
import { addGenerate } from './commands/generate.js';
import { addImatrix } from './commands/imatrix.js';
import { addInspect } from './commands/inspect.js';
import { addMergeIndex } from './commands/merge_index.js';
import { addPlan } from './commands/plan.js';
import { addQuantize } from './commands/quantize.js';
import { debugLines, exitCodeOf, type Failure, failureLines, failureOf, kExitFailed, kExitUsage } from './failure.js';
import { Interruption } from './interrupt.js';
import type { Context, Outcome, Run } from './outcome.js';
import { err, out } from './streams.js';
import { documentText, jsonText, type OutputOptions, type Terminal, terminalFor } from './terminal.js';

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
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

function printFailure(failure: Failure, terminal: Terminal): void {
  if (terminal.json) out.write(`${jsonText({ error: failure })}\n`);
  else err.write(`${failureLines(failure, terminal.err).join('\n')}\n`);
}

function printOutcome(outcome: Outcome, terminal: Terminal): void {
  if (terminal.json) {
    out.write(`${documentText(outcome.document)}\n`);
    return;
  }
  out.write(`${outcome.lines.join('\n')}\n`);
  if (outcome.remarks?.length) err.write(`${outcome.remarks.join('\n')}\n`);
}

const interruption = new Interruption();

const run: Run = async (options: OutputOptions, body: (context: Context) => Promise<Outcome>) => {
  const terminal = terminalFor(options);
  // Happens only if a promise is lost: nothing is pending, and there is no outcome.
  const stalled = () => {
    printFailure(failureOf(new Error('the command stopped without a result')), terminal);
    process.exit(kExitFailed);
  };
  process.once('beforeExit', stalled);
  try {
    const outcome = await body({ terminal, signal: interruption.signal });
    printOutcome(outcome, terminal);
    process.exitCode = outcome.failed ? kExitFailed : 0;
  } catch (error) {
    // An interrupted run ended because of the signal, regardless of what it throws.
    const cause: unknown = interruption.exitCode !== null ? interruption.signal.reason : error;
    printFailure(failureOf(cause), terminal);
    for (const line of debugLines(error)) err.write(`${line}\n`);
    process.exitCode = exitCodeOf(cause);
  } finally {
    process.removeListener('beforeExit', stalled);
  }
  // A read aborted by the signal (stdin, a slow server) may keep the process alive.
  if (interruption.exitCode !== null) process.exit();
};

/** Commander's messages: help and version go to stdout, errors to stderr, or all into the JSON document. */
function usageFailure(error: CommanderError, program: Command): Failure {
  const named = error.code === 'commander.help' ? 'no command given' : error.message;
  const [message = '', ...rest] = named.replace(/^error: /, '').split('\n');
  const suggestion = /^\((.*)\)$/.exec(rest.join(' ').trim())?.[1]?.replace(/^D/, 'd');
  const hint = suggestion ?? `${program.name()} --help lists commands and options`;
  return { code: 'usage', message, hint };
}

async function main(): Promise<void> {
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
    add(program, run);
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return;
    process.exitCode = kExitUsage;
    // The options were not parsed, so search for the raw flags.
    const flags = process.argv.slice(2);
    const terminal = terminalFor({ json: flags.includes('--json'), color: !flags.includes('--no-color') });
    if (helped && !terminal.json) err.write(helped);
    else printFailure(usageFailure(error, program), terminal);
  }
}

await main().catch((error: unknown) => {
  const lines = [...failureLines(failureOf(error), terminalFor({}).err), ...debugLines(error)];
  err.write(`${lines.join('\n')}\n`);
  process.exitCode = kExitFailed;
});
