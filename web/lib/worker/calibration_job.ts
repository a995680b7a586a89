// Calibrates blocks in a worker: load, observe inputs, change and store the weights, then run the quantized block.

import type { BoundCalibration, LayerEvidence } from '../engine/forward_module.js';
import type { StoredTile } from '../engine/module.js';
import { loadStep, loadTile, type Pass, runPortions, withPass } from './forward_job.js';
import { type JobHost, joined } from './job_host.js';
import type { CalibrationWork, ForwardStep, StoredBlock, WorkProgress } from './jobs.js';

/** Where the work is: the pass, and a callback for stored tensors. */
interface Place {
  host: JobHost;
  pass: Pass;
  calibration: BoundCalibration;
  stored(name: string, tensors: number, sums: StoredBlock['sums'], evidence?: StoredBlock['evidence']): void;
}

export function runCalibration(host: JobHost, work: CalibrationWork): Promise<null> {
  const { instance } = host;
  let block = 0;
  const stored: Place['stored'] = (name, tensors, sums, evidence = []) =>
    host.progress({
      phase: 'optimize',
      name,
      bytes: 0,
      tensors,
      stored: { block: block++, ...host.written(), sums, evidence },
    });
  return withPass(host, work, (pass) =>
    instance.withObject(
      (module) => new module.Calibration(pass.bound, work.quantization),
      async (calibration) => {
        instance.call<null>(() => calibration.error());
        const place = { host, pass, calibration, stored };
        for (const [number, step] of work.steps.entries()) {
          host.progress({ phase: 'calibrate', name: step.name, bytes: 0, tensors: 0 });
          const tensors = work.blocks[number] ?? [];
          const isBlock = number >= 1 && number <= work.layers;
          if (!isBlock && tensors.length > 0) {
            await rotateTables(place, number, step, tensors);
            continue;
          }
          await loadStep(host, pass, number, step);
          if (isBlock) await calibrateBlock(place, step, tensors);
        }
        return null;
      },
    ),
  );
}

/** Rotates the embedding, or final norm and head: reads, stores and (embedding) runs tile by tile. */
async function rotateTables(
  { host, pass, calibration, stored }: Place,
  number: number,
  { name, tensors: read }: ForwardStep,
  tensors: CalibrationWork['blocks'][number],
): Promise<void> {
  const { instance } = host;
  for (const [index, tensor] of read.entries()) {
    const { slot, item } = tensors[index] as (typeof tensors)[number];
    instance.call<null>(() => pass.bound.begin(number, tensor.slot, pass.work, tensor.task));
    await instance.withObject(
      (module) => new module.EmbeddingRotation(calibration, slot, host.work(0), item),
      async (rotation) => {
        instance.call<null>(() => rotation.error());
        const sums: Float64Array[] = [];
        for (let tile = 0; tile < tensor.tiles; ++tile) {
          await loadTile(host, pass, tile);
          sums.push(await host.write(instance.call<StoredTile>(() => rotation.store())));
          if (number === 0) await runPortions(host, pass);
          const isLast = tile + 1 === tensor.tiles;
          stored(name, isLast ? 1 : 0, isLast ? [[item, joined(sums)]] : []);
          host.progress({ phase: 'optimize', name, bytes: tensor.bytes / tensor.tiles, tensors: 0 });
        }
      },
    );
  }
}

async function calibrateBlock(
  { host, pass, calibration, stored }: Place,
  { name, tensors: read }: ForwardStep,
  tensors: CalibrationWork['blocks'][number],
): Promise<void> {
  const { instance } = host;
  const bytes = read.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const tasks = JSON.stringify(tensors.map(({ slot, item }) => ({ slot, task: item })));
  await instance.withObject(
    (module) => new module.BlockCalibrator(calibration, host.work(0), tasks),
    async (block) => {
      const parts = instance.call<boolean[]>(() => block.parts());
      const pieces = parts.reduce((sum, captures) => sum + (captures ? pass.portions : 0) + 1, 0);
      const done = (phase: NonNullable<WorkProgress['phase']>) =>
        host.progress({ phase, name, bytes: bytes / Math.max(1, pieces), tensors: 0 });
      for (const [part, captures] of parts.entries()) {
        for (let portion = 0; captures && portion < pass.portions; ++portion) {
          await host.pause();
          instance.call<null>(() => block.capture(part, portion));
          done('calibrate');
        }
        await host.pause();
        instance.call<null>(() => block.optimize(part));
        done('optimize');
      }
      if (pieces === 0) done('optimize');
      const sums: StoredBlock['sums'] = [];
      const evidence: StoredBlock['evidence'] = [];
      for (const { slot, item } of tensors) {
        await host.pause();
        const found = instance.call<LayerEvidence | null>(() => block.evidence(slot));
        if (found) evidence.push([item, found]);
        sums.push([item, await host.write(instance.call<StoredTile>(() => block.store(slot)))]);
      }
      stored(name, tensors.length, sums, evidence);
    },
  );
  await runPortions(host, pass);
}
