// Runs a reference and a model on the same tokens, and compares what they predict tile by tile of the vocabulary.

import type { BoundDivergence } from '../engine/forward_module.js';
import { loadTile, type Pass, runPortions, runStep, withPass } from './forward_job.js';
import type { JobHost } from './job_host.js';
import type { DivergenceWork, ForwardStep } from './jobs.js';

/** `valuesPerPosition` values of every scored position in order. */
export function runDivergence(host: JobHost, { reference, model }: DivergenceWork): Promise<Float64Array> {
  const { instance } = host;
  return withPass(host, reference, (expected) =>
    withPass(host, model, (found) =>
      instance.withObject(
        (module) => module.Divergence.make(expected.bound, found.bound),
        async (divergence) => {
          for (const [pass, { steps }] of [[expected, reference] as const, [found, model] as const])
            for (const [number, step] of steps.slice(0, -1).entries()) await runStep(host, pass, number, step);
          const heads = {
            reference: headTiles(host, expected, reference.steps),
            model: headTiles(host, found, model.steps),
          };
          await compareHeads(host, divergence, found.portions, heads);
          return instance.doubles(() => divergence.positions());
        },
      ),
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

/** Loads the final norm and the head; pauses whenever rows of the head are loaded. */
async function* headTiles(host: JobHost, pass: Pass, steps: ForwardStep[]): AsyncGenerator<void> {
  const number = steps.length - 1;
  const { name, tensors } = steps[number] as ForwardStep;
  const isStreamed = tensors.some(({ streamed }) => streamed);
  for (const [i, tensor] of tensors.entries()) {
    host.instance.done(() => pass.bound.begin(number, tensor.slot, pass.work, tensor.task));
    for (let tile = 0; tile < tensor.tiles; ++tile) {
      await loadTile(host, pass, tile);
      const isLast = tile + 1 === tensor.tiles;
      if (tensor.streamed || (!isStreamed && isLast && i + 1 === tensors.length)) yield;
      host.progress({ name, bytes: tensor.bytes / tensor.tiles, tensors: isLast ? 1 : 0 });
    }
  }
}
