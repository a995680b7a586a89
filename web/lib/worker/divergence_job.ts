// Runs a reference and models on the same tokens, and compares what they predict tile by tile of the vocabulary. The reference's blocks
// run once; its head is read again for each model.

import type { BoundDivergence, BoundForwardPass } from '../engine/forward_module.js';
import { loadTile, type Pass, runPortions, runStep, withPass } from './forward_job.js';
import type { JobHost } from './job_host.js';
import type { DivergenceWork, ForwardStep, ForwardWork } from './jobs.js';

/** `valuesPerPosition` values of every scored position in order, model by model. */
export function runDivergence(host: JobHost, { reference, models }: DivergenceWork): Promise<Float64Array> {
  return withPass(host, reference, async (expected) => {
    await runBlocks(host, expected, reference.steps);
    const found: number[] = [];
    for (const [number, model] of models.entries()) {
      const heads = headTiles(host, expected, reference.steps, number === 0);
      for (const value of await compared(host, expected.bound, heads, model)) found.push(value);
    }
    return Float64Array.from(found);
  });
}

async function runBlocks(host: JobHost, pass: Pass, steps: ForwardStep[]): Promise<void> {
  for (const [number, step] of steps.slice(0, -1).entries()) await runStep(host, pass, number, step);
}

function compared(
  host: JobHost,
  expected: BoundForwardPass,
  reference: AsyncGenerator<void>,
  model: ForwardWork,
): Promise<Float64Array> {
  const { instance } = host;
  return withPass(host, model, (found) =>
    instance.withObject(
      (module) => module.Divergence.make(expected, found.bound),
      async (divergence) => {
        await runBlocks(host, found, model.steps);
        const heads = { reference, model: headTiles(host, found, model.steps) };
        await compareHeads(host, divergence, found.portions, heads);
        return instance.doubles(() => divergence.positions());
      },
    ),
  );
}

type Side = 'reference' | 'model';

async function compareHeads(
  host: JobHost,
  divergence: BoundDivergence,
  portions: number[],
  heads: Record<Side, AsyncGenerator<void>>,
): Promise<void> {
  for (let behind: Record<Side, boolean> = { reference: true, model: true }; behind.reference || behind.model; ) {
    for (const side of ['reference', 'model'] as const)
      if (behind[side] && (await heads[side].next()).done) throw new RangeError(`the head of the ${side} ended early`);
    await runPortions(host, { bound: divergence, portions });
    behind = host.instance.call<Record<Side, boolean>>(() => divergence.behind());
  }
  for (const head of Object.values(heads)) await head.next(); // says that its last tile is done
}

/** Loads the final norm and the head; pauses whenever rows of the head are loaded. `counts`: as progress. */
async function* headTiles(host: JobHost, pass: Pass, steps: ForwardStep[], counts = true): AsyncGenerator<void> {
  const number = steps.length - 1;
  const { name, tensors } = steps[number] as ForwardStep;
  const isStreamed = tensors.some(({ streamed }) => streamed);
  for (const [i, tensor] of tensors.entries()) {
    host.instance.done(() => pass.bound.begin(number, tensor.slot, pass.work, tensor.task));
    for (let tile = 0; tile < tensor.tiles; ++tile) {
      await loadTile(host, pass, tile);
      const isLast = tile + 1 === tensor.tiles;
      if (tensor.streamed || (!isStreamed && isLast && i + 1 === tensors.length)) yield;
      if (counts) host.progress({ name, bytes: tensor.bytes / tensor.tiles, tensors: isLast ? 1 : 0 });
    }
  }
}
