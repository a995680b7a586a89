/**
 * Does what was asked for and prints the outcome. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 or 143 interrupted.
 * Stdout gets the outcome (text, or one JSON document with --json, also for failures), stderr everything else.
 */
import type { Asked } from './asked.js';
import { commandOf } from './commands/table.js';
import { compileEarly } from './early_module.js';
import { debugLines, exitCodeOf, type Failure, failureLines, failureOf, kExitFailed } from './failure.js';
import { Interruption } from './interrupt.js';
import type { Outcome } from './outcome.js';
import { err, out } from './streams.js';
import { documentText, jsonText, type Terminal, terminalFor } from './terminal.js';

export function printFailure(failure: Failure, terminal: Terminal): void {
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

/** What no command caught: a bug, or files of this package that are missing. */
export function printUnexpected(error: unknown): void {
  printFailure(failureOf(error), terminalFor({}));
  for (const line of debugLines(error)) err.write(`${line}\n`);
  process.exitCode = kExitFailed;
}

export async function execute(asked: Asked): Promise<void> {
  const interruption = new Interruption();
  const terminal = terminalFor(asked.options);
  // Happens only if a promise is lost: nothing is pending, and there is no outcome.
  const stalled = () => {
    printFailure(failureOf(new Error('the command stopped without a result')), terminal);
    process.exit(kExitFailed);
  };
  process.once('beforeExit', stalled);
  try {
    if (asked.name !== 'explain') compileEarly();
    const command = await commandOf(asked);
    const outcome = await command({ terminal, signal: interruption.signal }, asked.given, asked.options);
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
}
