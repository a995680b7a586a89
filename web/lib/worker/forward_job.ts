// Runs a batch of sequences through a whole model in a worker, step by step, each tensor read and decoded tile by tile.
// A continuation runs one sequence repeatedly, each time with the token found last.

import { failure } from '../api/errors.js';
import type { BoundWork } from '../engine/bound_work.js';
import type { BoundForwardPass } from '../engine/forward_module.js';
import type { JobHost } from './job_host.js';
import type { ContinuationWork, ForwardStep, ForwardWork } from './jobs.js';
import type { Team } from './team.js';

/** A forward pass, the portions of its batch that this worker runs, its tasks, and the model that they read. */
export interface Pass {
  bound: BoundForwardPass;
  portions: number[];
  work: BoundWork;
  /** Index in `ContextFiles.inputs`. */
  model: number;
}

export function withPass<T>(
  host: JobHost,
  {
    config,
    reads,
    tokens,
    lengths,
    activations = 'float32',
    keepsStates = false,
    scored = 'all',
    model = 0,
  }: Omit<ForwardWork, 'steps' | 'activations'> & Partial<ForwardWork>,
  use: (pass: Pass) => Promise<T>,
): Promise<T> {
  const { instance, team } = host;
  const options = JSON.stringify({ activations, lengths, keepsStates, scored });
  return instance.withObject(
    (module) =>
      instance.withBytes(tokens, (pointer) => new module.ForwardPass(config, options, pointer, tokens.length)),
    (bound) => {
      const all = Array.from({ length: instance.call<number>(() => bound.portions()) }, (_, portion) => portion);
      const portions = all.filter((portion) => runsPortion(team, portion));
      return use({ bound, portions, work: host.work(reads), model });
    },
  );
}

/** Portions are dealt to the members of a team in turn. */
export function runsPortion({ member, members }: Team, portion: number): boolean {
  return portion % members === member;
}

/** Negative log-likelihood of each sequence, in nats. */
export function runForward(host: JobHost, work: ForwardWork): Promise<Float64Array> {
  return withPass(host, work, async (pass) => {
    await runSteps(host, pass, work.steps);
    const { pointer, count } = host.instance.call<{ pointer: number; count: number }>(() => pass.bound.losses());
    return host.instance.float64(pointer, count);
  });
}

/** The most probable next tokens after `tokens`: at most `count`, ending with one of `ends`. */
export async function runContinuation(host: JobHost, work: ContinuationWork): Promise<number[]> {
  const known = [...work.tokens];
  while (known.length < work.tokens.length + work.count) {
    const tokens = Int32Array.from(known);
    const next = await withPass(host, { ...work, tokens, lengths: [tokens.length] }, async (pass) => {
      await runSteps(host, pass, work.steps);
      return host.instance.run(() => pass.bound.nextToken(0));
    });
    if (next < 0)
      throw failure('value-not-finite', 'logits', 'are NaN or infinite; the weights hold such values, or overflow');
    known.push(next);
    if (work.ends.includes(next)) break;
  }
  return known.slice(work.tokens.length);
}

async function runSteps(host: JobHost, pass: Pass, steps: ForwardStep[]): Promise<void> {
  for (const [number, step] of steps.entries()) await runStep(host, pass, number, step);
}

export async function runStep(host: JobHost, pass: Pass, number: number, step: ForwardStep): Promise<void> {
  const { name } = step;
  const isStreamed = step.tensors.some((tensor) => tensor.streamed);
  await loadStep(host, pass, number, step, (bytes, tensors) => {
    if (isStreamed) host.progress({ name, bytes, tensors });
  });
  if (isStreamed) return;
  // The products take the time, not reading.
  const bytes = step.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0) / pass.portions.length;
  await runPortions(host, pass, () => host.progress({ name, bytes, tensors: 0 }));
  host.progress({ name, bytes: 0, tensors: step.tensors.length });
}

/** Reads and decodes the tensors of a step; runs streamed ones. Calls `done` after each tile. */
export async function loadStep(
  host: JobHost,
  pass: Pass,
  number: number,
  step: ForwardStep,
  done: (bytes: number, tensors: number) => void = () => {},
): Promise<void> {
  const { instance } = host;
  for (const tensor of step.tensors) {
    instance.call<null>(() => pass.bound.begin(number, tensor.slot, pass.work, tensor.task));
    for (let tile = 0; tile < tensor.tiles; ++tile) {
      await loadTile(host, pass, tile);
      if (tensor.streamed) await runPortions(host, pass);
      done(tensor.bytes / tensor.tiles, tile + 1 === tensor.tiles ? 1 : 0);
    }
  }
}

export async function loadTile(host: JobHost, { bound, model }: Pass, tile: number): Promise<void> {
  await host.pause();
  await host.read(model, bound, tile);
  host.instance.call<null>(() => bound.load(tile));
}

export async function runPortions(
  host: JobHost,
  { bound, portions }: Pick<Pass, 'portions'> & { bound: Pick<BoundForwardPass, 'run'> },
  done: () => void = () => {},
): Promise<void> {
  for (const portion of portions) {
    await host.pause();
    host.instance.call<null>(() => bound.run(portion));
    done();
  }
}
