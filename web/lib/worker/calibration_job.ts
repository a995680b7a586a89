// The blocks of a model, calibrated one after another in a worker: load, see the inputs, change the weights, store what
// they became, and run the block as it will be read back, so that the next one sees that.

import type { Instance } from '../engine/instance.js';
import type { BoundForwardPass, TileRead, TileWrite } from '../engine/module.js';
import { type ForwardHost, loadStep, runPortions, setTokens } from './forward_job.js';
import type { CalibrationWork, ForwardStep, InputObservation, StoredBlock, WorkProgress } from './protocol.js';

export interface CalibrationHost extends ForwardHost {
  /** Takes the output of a tensor; the memory is the module's. */
  write(writes: TileWrite[]): Promise<void>;
  /** What was written since the last call. */
  written(): Pick<StoredBlock, 'pieces' | 'written'>;
  sums(result: { sums: number; units: number }): Float64Array;
}

export async function runCalibration(instance: Instance, work: CalibrationWork, host: CalibrationHost): Promise<void> {
  const options = JSON.stringify({ activations: 'float32' });
  const pass = instance.run((module) => new module.ForwardPass(work.config, options));
  try {
    instance.call<null>(() => pass.calibrate(work.quantization));
    const portions = setTokens(instance, pass, work);
    let units = 0;
    const stored = (name: string, tensors: number, sums: StoredBlock['sums']) =>
      host.progress({
        phase: 'optimize',
        name,
        bytes: 0,
        tensors,
        stored: { block: units++, ...host.written(), sums },
      });
    for (const [number, step] of work.steps.entries()) {
      host.progress({ phase: 'calibrate', name: step.name, bytes: 0, tensors: 0 });
      const tensors = work.blocks[number] ?? [];
      if (number < 1 || number > work.layers) {
        if (tensors.length === 0) await loadStep(instance, pass, number, step, portions, host, () => {});
        else await turnTables(instance, pass, number, step, tensors, number < 1 ? portions : 0, host, stored);
        continue;
      }
      await loadStep(instance, pass, number, step, portions, host, () => {});
      const bytes = step.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
      await calibrateBlock(instance, pass, portions, tensors, host, (phase, fraction) =>
        host.progress({ phase, name: step.name, bytes: bytes * fraction, tensors: 0 }),
      );
      const sums: StoredBlock['sums'] = [];
      for (const { slot, item } of tensors) {
        await host.pause();
        const stored = instance.call<{ writes: TileWrite[]; sums: number; units: number }>(() => pass.store(slot));
        await host.write(stored.writes);
        sums.push([item, host.sums(stored)]);
      }
      stored(step.name, tensors.length, sums);
      await runPortions(instance, pass, portions, host, () => {});
    }
  } finally {
    instance.free(pass);
  }
}

/** Embedding, or final norm and head, as a rotation turns them: read, stored and, for `portions`, run tile by tile. */
async function turnTables(
  instance: Instance,
  pass: BoundForwardPass,
  number: number,
  step: ForwardStep,
  tensors: CalibrationWork['blocks'][number],
  portions: number,
  host: CalibrationHost,
  stored: (name: string, tensors: number, sums: StoredBlock['sums']) => void,
): Promise<void> {
  for (const [index, tensor] of step.tensors.entries()) {
    const { slot, item, task } = tensors[index] as (typeof tensors)[number];
    instance.call<null>(() => pass.begin(number, tensor.slot, tensor.task));
    instance.call<null>(() => pass.beginTable(slot, task));
    const sums: number[] = [];
    for (let tile = 0; tile < tensor.tiles; ++tile) {
      await host.pause();
      await host.read(instance.call<TileRead[]>(() => pass.reads(tile)));
      instance.call<null>(() => pass.load(tile));
      const change = instance.call<{ writes: TileWrite[]; sums: number; units: number }>(() => pass.storeRows());
      await host.write(change.writes);
      sums.push(...host.sums(change));
      await runPortions(instance, pass, portions, host, () => {});
      const isLast = tile + 1 === tensor.tiles;
      stored(step.name, isLast ? 1 : 0, isLast ? [[item, Float64Array.from(sums)]] : []);
      host.progress({ phase: 'optimize', name: step.name, bytes: tensor.bytes / tensor.tiles, tensors: 0 });
    }
  }
}

/** The inputs of linear layers, seen as often as their observers ask: JSON text of what these found. */
export async function runObservation(
  instance: Instance,
  work: InputObservation,
  host: ForwardHost,
): Promise<Uint8Array> {
  const options = JSON.stringify({ activations: 'float32' });
  const pass = instance.run((module) => new module.ForwardPass(work.config, options));
  try {
    const passes = instance.call<string>(() => pass.observe(work.requests)) === '' ? 1 : 2;
    for (let number = 1; number <= passes; ++number) {
      if (number > 1) instance.call<null>(() => pass.nextPass());
      const portions = setTokens(instance, pass, work);
      for (const [index, step] of work.steps.entries()) {
        await loadStep(instance, pass, index, step, portions, host, () => {});
        if (!step.tensors.some(({ streamed }) => streamed)) await runPortions(instance, pass, portions, host, () => {});
      }
    }
    return new TextEncoder().encode(JSON.stringify(instance.call<object>(() => pass.observed())));
  } finally {
    instance.free(pass);
  }
}

/** `done` gets parts of the block's work; they add up to 1. */
async function calibrateBlock(
  instance: Instance,
  pass: BoundForwardPass,
  portions: number,
  tensors: { slot: number; task: string }[],
  host: CalibrationHost,
  done: (phase: NonNullable<WorkProgress['phase']>, fraction: number) => void,
): Promise<void> {
  const tasks = JSON.stringify(tensors.map(({ slot, task }) => ({ slot, task })));
  const parts = instance.call<boolean[]>(() => pass.beginBlock(tasks));
  const pieces = parts.reduce((sum, captures) => sum + (captures ? portions : 0) + 1, 0);
  for (const [part, captures] of parts.entries()) {
    instance.call<null>(() => pass.prepare(part));
    for (let portion = 0; captures && portion < portions; ++portion) {
      await host.pause();
      instance.call<null>(() => pass.capture(portion));
      done('calibrate', 1 / pieces);
    }
    await host.pause();
    instance.call<null>(() => pass.optimize(part));
    done('optimize', 1 / pieces);
  }
  if (pieces === 0) done('optimize', 1);
}
