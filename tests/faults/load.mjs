// Many models in one process: one after another with the heap back at its mark and nothing left open, and many at once
// through one pool, with the same bytes.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { contentsOf, writeModel } from './model.mjs';

const atOnce = 50;
/** What may come and go between two looks at the heap, in bytes. */
const slack = 4 * 2 ** 20;

/** Bytes in use by JavaScript once garbage is gone. */
async function heapBytes() {
  for (let round = 0; round < 4; ++round) {
    globalThis.gc();
    await sleep(20);
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const descriptors = () => readdirSync('/proc/self/fd').length;

export async function load(folder, count, fault, createQuantizer) {
  const model = writeModel(join(folder, 'load'), 2);
  const quantizer = await createQuantizer({ threads: 2 });
  const run = async (target) => {
    const opened = await quantizer.open(model);
    try {
      await quantizer.quantizeModel(opened, 'int4_wo_128', { target, overwrite: true });
    } finally {
      await opened.close();
    }
  };
  const out = join(folder, 'out');
  for (let warm = 0; warm < 10; ++warm) await run(out);
  const expected = contentsOf(out);
  const before = { heap: await heapBytes(), files: descriptors(), objects: quantizer.liveObjects };
  for (let at = 0; at < count; ++at) await run(out);
  const after = { heap: await heapBytes(), files: descriptors(), objects: quantizer.liveObjects };
  fault(after.heap - before.heap < slack, `${count} runs left ${after.heap - before.heap} bytes of the heap`);
  fault(after.files === before.files, `${after.files - before.files} files stayed open`);
  fault(after.objects === before.objects, `${after.objects - before.objects} objects of the module stayed alive`);
  fault(contentsOf(out) === expected, 'the last run gave other bytes');

  const many = Array.from({ length: atOnce }, (_, at) => join(folder, `out-${at}`));
  const outcomes = await Promise.allSettled(many.map(run));
  for (const [at, { reason }] of outcomes.entries())
    fault(contentsOf(many[at]) === expected, `run ${at} of ${atOnce} at once: ${reason?.message ?? 'other bytes'}`);
  await quantizer[Symbol.asyncDispose]();
  await sleep(100);
  const open = process
    .getActiveResourcesInfo()
    .filter((name) => !/^(TTYWrap|PipeWrap|Timeout|FSReqPromise)$/.test(name));
  fault(open.length === 0, `after the end: ${open.join(', ')}`);
  const change = ((after.heap - before.heap) / 1024).toFixed(0);
  return `${count} models in a row (heap ${change} KiB after), ${atOnce} at once`;
}
