// Runs a batch of sequences through a whole model in a worker, step by step, each tensor read and decoded tile by tile.
// A continuation runs a prompt, then one token after another behind it; steps that fit memory are read only once.

import { failure } from '../api/errors.js';
import type { BoundWork } from '../engine/bound_work.js';
import type { BoundForwardPass } from '../engine/forward_module.js';
import type { JobHost } from './job_host.js';
import type { ContinuationWork, EmbeddingWork, ForwardStep, ForwardWork } from './jobs.js';
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
    architecture,
    reads,
    tokens,
    lengths,
    activations = 'float32',
    keepsStates = false,
    scored = 'all',
    positions = 0,
    model = 0,
    replaced = [],
  }: Omit<ForwardWork, 'steps' | 'activations'> & Partial<ForwardWork>,
  use: (pass: Pass) => Promise<T>,
): Promise<T> {
  const { instance, team } = host;
  const options = JSON.stringify({ activations, lengths, keepsStates, scored, positions });
  return instance.withObject(
    (module) =>
      instance.withBytes(architecture, (at) =>
        instance.withBytes(tokens, (pointer) =>
          module.ForwardPass.make(at, architecture.byteLength, options, pointer, tokens.length),
        ),
      ),
    (bound) => {
      const all = Array.from({ length: instance.run(() => bound.portions()) }, (_, portion) => portion);
      const portions = all.filter((portion) => runsPortion(team, portion));
      for (const { step, slot, work, task } of replaced)
        instance.done(() => bound.replace(step, slot, host.work(work), task));
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
    return host.instance.doubles(() => pass.bound.losses());
  });
}

/** The embedding of each sequence. */
export function runEmbedding(host: JobHost, work: EmbeddingWork): Promise<Float32Array> {
  return withPass(host, work, async (pass) => {
    await runSteps(host, pass, work.steps);
    return host.instance.floats(() => pass.bound.embeddings(work.pooling));
  });
}

/** The most probable next tokens after `tokens`: at most `count`, ending with one of `ends`. */
export function runContinuation(host: JobHost, work: ContinuationWork): Promise<number[]> {
  const { tokens, count, ends, steps, kept } = work;
  const { instance } = host;
  const positions = tokens.length + count - 1;
  return withPass(host, { ...work, lengths: [tokens.length], positions }, async (pass) => {
    const added: number[] = [];
    for (;;) {
      for (const [number, step] of steps.entries()) {
        if (added.length === 0 || !kept[number]) await runStep(host, pass, number, step, kept[number] === true);
        else await runKeptStep(host, pass, number, step);
      }
      const next = instance.run(() => pass.bound.nextToken(0));
      if (next < 0)
        throw failure('value-not-finite', 'logits', 'are NaN or infinite; the weights hold such values, or overflow');
      added.push(next);
      if (added.length === count || ends.includes(next)) return added;
      instance.done(() => pass.bound.extend(next));
    }
  });
}

async function runKeptStep(host: JobHost, { bound }: Pass, number: number, { name, tensors }: ForwardStep) {
  await host.pause();
  host.instance.done(() => bound.runKept(number));
  host.progress({ name, bytes: tensors.reduce((sum, { bytes }) => sum + bytes, 0), tensors: tensors.length });
}

async function runSteps(host: JobHost, pass: Pass, steps: ForwardStep[]): Promise<void> {
  for (const [number, step] of steps.entries()) await runStep(host, pass, number, step);
}

/** `keeps`: so that it need not be loaded again. */
export async function runStep(
  host: JobHost,
  pass: Pass,
  number: number,
  step: ForwardStep,
  keeps = false,
): Promise<void> {
  const { name } = step;
  const isStreamed = step.tensors.some((tensor) => tensor.streamed);
  const done = (bytes: number, tensors: number) => {
    if (isStreamed) host.progress({ name, bytes, tensors });
  };
  await loadStep(host, pass, number, step, done, keeps);
  if (isStreamed) return;
  // The products take the time, not reading.
  const bytes = step.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0) / pass.portions.length;
  await runPortions(host, pass, () => host.progress({ name, bytes, tensors: 0 }));
  if (keeps) keep(host, pass);
  host.progress({ name, bytes: 0, tensors: step.tensors.length });
}

const keep = ({ instance }: JobHost, { bound }: Pass) => instance.done(() => bound.keep());

/** Reads and decodes the tensors of a step; runs streamed ones, and keeps them if it `keeps`. Calls `done` after each tile. */
export async function loadStep(
  host: JobHost,
  pass: Pass,
  number: number,
  step: ForwardStep,
  done: (bytes: number, tensors: number) => void = () => {},
  keeps = false,
): Promise<void> {
  const { instance } = host;
  for (const tensor of step.tensors) {
    instance.done(() => pass.bound.begin(number, tensor.slot, pass.work, tensor.task));
    for (let tile = 0; tile < tensor.tiles; ++tile) {
      if (keeps || instance.flag(() => pass.bound.needs(tile))) {
        await loadTile(host, pass, tile);
        if (tensor.streamed) await runPortions(host, pass);
        if (tensor.streamed && keeps) keep(host, pass);
      }
      done(tensor.bytes / tensor.tiles, tile + 1 === tensor.tiles ? 1 : 0);
    }
  }
}

export async function loadTile(host: JobHost, { bound, model }: Pass, tile: number): Promise<void> {
  await host.pause();
  await host.read(model, bound, tile);
  host.instance.done(() => bound.load(tile));
}

export async function runPortions(
  host: JobHost,
  { bound, portions }: Pick<Pass, 'portions'> & { bound: Pick<BoundForwardPass, 'run'> },
  done: () => void = () => {},
): Promise<void> {
  for (const portion of portions) {
    await host.pause();
    host.instance.done(() => bound.run(portion));
    done();
  }
}
