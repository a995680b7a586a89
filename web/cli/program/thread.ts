/**
 * Does a command in a thread of its own (thread.ts of the folder above), and listens for signals meanwhile: a thread that plans, or reads a large
 * header, hears nothing. The second signal ends the process, and so does the first if the thread does not hear it.
 */
import { writeSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { isMainThread, Worker } from 'node:worker_threads';
import type { Asked } from '../asked.js';
import { codeOf, exitCodes, type Signal } from '../signals.js';
import { err, out, type ThreadData } from '../streams.js';

const kFailed = 1;
/** Within this time the thread says that it has heard a signal. */
const kHearsMs = 1000;
/** Of new objects. By default it grows to 48 MiB, which large models fill with rows that are read and dropped. */
const kYoungMib = 4;

function say(isJson: boolean, code: string, message: string, hint?: string): void {
  if (isJson) {
    writeSync(1, `${JSON.stringify({ error: { code, message, hint } }, null, 2)}\n`);
    return;
  }
  // A progress bar hides the cursor.
  if (err.isTTY) writeSync(2, '\r\x1b[0K\x1b[?25h');
  writeSync(2, `error: ${message} (${code})\n${hint ? `  hint: ${hint}\n` : ''}`);
}

/** Until the thread ends, and the process with it. */
function listen(worker: Worker, isJson: boolean): void {
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
          isJson,
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
        isJson,
        'memory-budget',
        'the tensors that the files list do not fit in the memory of the process',
        'node --max-old-space-size=MIB allows more; split the model into files of fewer tensors',
      );
    else say(isJson, 'internal', error.stack ?? String(error), 'this is a bug in wasmquant');
  });
}

/** Whether something that was asked for is `-`, stdin; else it is not read, so that it can be left open. */
const readsStdin = ({ given, options }: Asked) => [...given, ...Object.values(options)].includes('-');

/** False where no thread can be started, as under `node --permission` without --allow-worker, and where this one is no program's first. */
export function doInThread(asked: Asked): boolean {
  if (!isMainThread) return false;
  const workerData: ThreadData = { columns: { out: out.columns, err: err.columns }, asked };
  const maxOldGenerationSizeMb = Math.ceil(getHeapStatistics().heap_size_limit / 2 ** 20);
  const resourceLimits = { maxYoungGenerationSizeMb: kYoungMib, maxOldGenerationSizeMb };
  const stdin = readsStdin(asked);
  let worker: Worker;
  try {
    worker = new Worker(new URL('./thread.cjs', import.meta.url), { workerData, stdin, resourceLimits });
  } catch {
    return false;
  }
  listen(worker, 'json' in asked.options && asked.options.json === true);
  if (stdin && worker.stdin) process.stdin.pipe(worker.stdin);
  return true;
}
