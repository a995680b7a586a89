// Workers that die: threads that are ended in the middle of a job once and for good, and memory that runs out. The run is
// mended, or ends with worker-crashed and nothing written; the next one gives the whole output.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { root } from '../setup/command.mjs';
import { contentsOf, random, writeModel } from './model.mjs';
import { outOfMemory, withLittleMemory } from './small_memory.mjs';

/** Worker threads of this process, as they come; `Worker.prototype.postMessage` is how the pool first speaks to each. */
function watchWorkers() {
  const seen = new Set();
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function post(...args) {
    seen.add(this);
    return postMessage.apply(this, args);
  };
  const restore = () => {
    Worker.prototype.postMessage = postMessage;
  };
  return { seen, restore };
}

export async function workers(folder, count, fault, createQuantizer) {
  const model = writeModel(join(folder, 'workers'), 3);
  const next = random(count + 4);
  const watch = watchWorkers();
  let [number, ended, mended] = [0, 0, 0];
  const run = async (quantizer, target) => {
    let opened = null;
    try {
      opened = await quantizer.open(model);
      await quantizer.quantizeModel(opened, 'int4_wo_128', { target });
      return null;
    } catch (error) {
      return error;
    } finally {
      await opened?.close();
    }
  };
  const first = await createQuantizer({ threads: 2 });
  const start = performance.now();
  await run(first, join(folder, 'whole'));
  const milliseconds = performance.now() - start;
  const whole = contentsOf(join(folder, 'whole'));
  await first[Symbol.asyncDispose]();

  for (let at = 0; at < count; ++at) {
    watch.seen.clear();
    const quantizer = await createQuantizer({ threads: 2 });
    const target = join(folder, `out-${number++}`);
    const running = run(quantizer, target);
    let isOver = false;
    const over = running.then(() => {
      isOver = true;
    });
    await Promise.race([sleep(next() * milliseconds), over]);
    // Every other time all that come are ended, again and again, until the run gives up.
    for (let round = 0; !isOver && round < (at % 2 === 0 ? 1 : 1000); ++round) {
      for (const worker of watch.seen) {
        watch.seen.delete(worker);
        await worker.terminate();
        ended += 1;
      }
      await Promise.race([sleep(2), over]);
    }
    const error = await running;
    const found = contentsOf(target);
    if (error === null) mended += 1;
    const isRight = error === null ? found === whole : error.code === 'worker-crashed' && found === null;
    fault(isRight, `ended workers, run ${at}: ${error?.code ?? 'other bytes'} ${error?.message ?? ''}`);
    const after = join(folder, `out-${number++}`);
    const again = await run(quantizer, after);
    fault(again === null && contentsOf(after) === whole, `after ended workers: ${again?.message ?? 'other bytes'}`);
    await quantizer[Symbol.asyncDispose]();
  }
  watch.restore();

  const bytes = readFileSync(join(root, 'dist/wasmquant.wasm'));
  let refused = 0;
  for (const pages of [12, 16, 20, 24, 100]) {
    const wasmModule = await WebAssembly.compile(withLittleMemory(bytes, pages));
    const target = join(folder, `memory-${pages}`);
    const quantizer = await createQuantizer({ threads: 2, wasmModule });
    const error = await run(quantizer, target);
    const isRight = error === null ? contentsOf(target) === whole : contentsOf(target) === null;
    const isForeseen = error === null || outOfMemory.includes(error.code);
    fault(isRight && isForeseen, `${pages} pages: ${error?.code} ${error?.message}`);
    if (error?.code === 'worker-crashed') refused += 1;
    await quantizer[Symbol.asyncDispose]();
  }
  fault(refused > 0, 'no memory was too small');
  return `${ended} threads ended in ${count} runs, of which ${mended} were mended; memory ran out ${refused} times`;
}
