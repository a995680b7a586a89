/**
 * Starts the command in a thread of its own (command.ts), and listens for signals: a thread that plans, or reads a large header, hears nothing
 * meanwhile. The second signal ends the process, and so does the first if the thread does not hear it.
 */
import { writeSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { codeOf, exitCodes, type Signal } from './signals.js';

const kFailed = 1;
/** Within this time the thread says that it has heard a signal. */
const kHearsMs = 1000;
/** Of new objects. By default it grows to 48 MiB, which large models fill with rows that are read and dropped. */
const kYoungMib = 4;

const script = new URL('./command.js', import.meta.url);
const argv = process.argv.slice(2);

function say(code: string, message: string, hint?: string): void {
  if (argv.includes('--json')) {
    writeSync(1, `${JSON.stringify({ error: { code, message, hint } }, null, 2)}\n`);
    return;
  }
  // A progress bar hides the cursor.
  if (process.stderr.isTTY) writeSync(2, '\r\x1b[0K\x1b[?25h');
  writeSync(2, `error: ${message} (${code})\n${hint ? `  hint: ${hint}\n` : ''}`);
}

function listen(worker: Worker): void {
  let arrived = false;
  let deaf: NodeJS.Timeout | null = null;
  worker.on('message', () => {
    if (deaf) clearTimeout(deaf);
  });
  for (const name of Object.keys(exitCodes) as Signal[])
    process.on(name, () => {
      if (arrived) process.exit(exitCodes[name]);
      arrived = true;
      worker.postMessage(name);
      deaf = setTimeout(() => {
        const { code, message } = codeOf(name);
        say(
          code,
          message,
          'the run was busy and could not clean up: a .partial folder may be left, which --resume continues',
        );
        process.exit(exitCodes[name]);
      }, kHearsMs);
    });
  worker.on('exit', (code) => {
    if (deaf) clearTimeout(deaf);
    process.exit(code);
  });
  worker.on('error', (error: NodeJS.ErrnoException) => {
    process.exitCode = kFailed;
    if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
      say(
        'memory-budget',
        'the tensors that the files list do not fit in the memory of the process',
        'node --max-old-space-size=MIB allows more; split the model into files of fewer tensors',
      );
    else say('internal', error.stack ?? String(error), 'this is a bug in wasmquant');
  });
}

/** Whether the arguments name stdin; else it is not read, so that it can be left open. */
const readsStdin = argv.some((argument) => /^(-|-[a-z]-|--[a-z-]+=-)$/.test(argument));

function start(): Worker | null {
  const columns = { out: process.stdout.columns, err: process.stderr.columns };
  const maxOldGenerationSizeMb = Math.ceil(getHeapStatistics().heap_size_limit / 2 ** 20);
  const resourceLimits = { maxYoungGenerationSizeMb: kYoungMib, maxOldGenerationSizeMb };
  try {
    return new Worker(script, { argv, workerData: { columns }, stdin: readsStdin, resourceLimits });
  } catch {
    return null; // as under `node --permission` without --allow-worker
  }
}

const worker = start();
if (worker) {
  listen(worker);
  if (readsStdin && worker.stdin) process.stdin.pipe(worker.stdin);
} else await import(script.href);
