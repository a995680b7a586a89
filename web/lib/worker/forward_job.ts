// One batch of sequences through a whole model, in a worker: step by step, each tensor read and decoded tile by tile.
// A continuation is one sequence that goes through again and again, each time with the token that was found last.

import { failure } from '../api/errors.js';
import type { Instance } from '../engine/instance.js';
import type { BoundForwardPass, TileRead } from '../engine/module.js';
import type { ContinuationWork, ForwardStep, ForwardWork, WorkProgress } from './protocol.js';

export interface ForwardHost {
  /** Fetches the bytes of a tile. */
  read(reads: TileRead[]): Promise<void>;
  /** Between pieces of work; throws when the job is not wanted any more. */
  pause(): Promise<void>;
  progress(progress: WorkProgress): void;
}

/** Negative log-likelihood of each sequence, in nats. */
export async function runForward(instance: Instance, work: ForwardWork, host: ForwardHost): Promise<Float64Array> {
  const options = JSON.stringify({ activations: work.activations });
  const pass = instance.run((module) => new module.ForwardPass(work.config, options));
  try {
    await runSteps(instance, pass, work, host);
    const { pointer, count } = instance.call<{ pointer: number; count: number }>(() => pass.losses());
    return instance.float64(pointer, count);
  } finally {
    instance.free(pass);
  }
}

/** The most probable token after `tokens`, the one after that, and so on: at most `count`, the last may be of `ends`. */
export async function runContinuation(
  instance: Instance,
  work: ContinuationWork,
  host: ForwardHost,
): Promise<Float64Array> {
  const pass = instance.run((module) => new module.ForwardPass(work.config, JSON.stringify({})));
  const known = [...work.tokens];
  try {
    while (known.length < work.tokens.length + work.count) {
      const tokens = Int32Array.from(known);
      await runSteps(instance, pass, { ...work, tokens, length: tokens.length }, host);
      const next = instance.run(() => pass.nextToken(0));
      if (next < 0)
        throw failure('value-not-finite', 'logits', 'are NaN or infinite; the weights hold such values, or overflow');
      known.push(next);
      if (work.ends.includes(next)) break;
    }
    return Float64Array.from(known.slice(work.tokens.length));
  } finally {
    instance.free(pass);
  }
}

async function runSteps(
  instance: Instance,
  pass: BoundForwardPass,
  work: Pick<ForwardWork, 'steps' | 'tokens' | 'length'>,
  host: ForwardHost,
): Promise<void> {
  const portions = setTokens(instance, pass, work);
  for (const [number, step] of work.steps.entries()) {
    const { name } = step;
    const isStreamed = step.tensors.some((tensor) => tensor.streamed);
    await loadStep(instance, pass, number, step, portions, host, (bytes, tensors) => {
      if (isStreamed) host.progress({ name, bytes, tensors });
    });
    if (isStreamed) continue;
    // The time goes into the products, not into reading.
    const bytes = step.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0) / portions;
    await runPortions(instance, pass, portions, host, () => host.progress({ name, bytes, tensors: 0 }));
    host.progress({ name, bytes: 0, tensors: step.tensors.length });
  }
}

/** Begins with a batch; how many portions it has. */
export function setTokens(
  instance: Instance,
  pass: BoundForwardPass,
  { tokens, length }: Pick<ForwardWork, 'tokens' | 'length'>,
): number {
  const { portions } = instance.withBytes(tokens, (pointer) =>
    instance.call<{ portions: number }>(() => pass.setTokens(pointer, tokens.length, length)),
  );
  return portions;
}

/** Reads and decodes the tensors of a step; runs those that are streamed. `done` after each tile. */
export async function loadStep(
  instance: Instance,
  pass: BoundForwardPass,
  number: number,
  step: ForwardStep,
  portions: number,
  host: ForwardHost,
  done: (bytes: number, tensors: number) => void,
): Promise<void> {
  for (const tensor of step.tensors) {
    instance.call<null>(() => pass.begin(number, tensor.slot, tensor.task));
    for (let tile = 0; tile < tensor.tiles; ++tile) {
      await host.pause();
      await host.read(instance.call<TileRead[]>(() => pass.reads(tile)));
      instance.call<null>(() => pass.load(tile));
      if (tensor.streamed) await runPortions(instance, pass, portions, host, () => {});
      done(tensor.bytes / tensor.tiles, tile + 1 === tensor.tiles ? 1 : 0);
    }
  }
}

/** Runs the step that is loaded on the whole batch. */
export async function runPortions(
  instance: Instance,
  pass: BoundForwardPass,
  portions: number,
  host: ForwardHost,
  done: () => void,
): Promise<void> {
  for (let portion = 0; portion < portions; ++portion) {
    await host.pause();
    instance.call<null>(() => pass.run(portion));
    done();
  }
}
