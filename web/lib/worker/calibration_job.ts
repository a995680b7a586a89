// Calibrates blocks in a team of workers: load, observe inputs, change and store the weights, then run the quantized block.
// Each member runs its own portions of the batch and shows all others the inputs of layers, in the order of portions; each
// sums a part of the Hessian's rows over all of them, and makes a part of what follows from them. The first member stores and
// reports.

import type { BoundBlockCalibrator, BoundCalibration, LayerEvidence } from '../engine/forward_module.js';
import type { StoredTile } from '../engine/module.js';
import { loadStep, loadTile, type Pass, runPortions, runsPortion, withPass } from './forward_job.js';
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
  const { instance, team } = host;
  let block = 0;
  const stored: Place['stored'] = (name, tensors, sums, evidence = []) =>
    report(host, {
      phase: 'optimize',
      name,
      bytes: 0,
      tensors,
      stored: { block: block++, ...host.written(), sums, evidence },
    });
  return withPass(host, work, (pass) =>
    instance.withObject(
      (module) => module.Calibration.make(pass.bound, work.quantization, team.member, team.members),
      async (calibration) => {
        const place = { host, pass, calibration, stored };
        for (const [number, step] of work.steps.entries()) {
          report(host, { phase: 'calibrate', name: step.name, bytes: 0, tensors: 0 });
          const tensors = [...(work.blocks[number] ?? [])];
          const isBlock = number >= 1 && number <= work.layers;
          if (!isBlock && tensors.length > 0) {
            await rotateTables(place, number, step, tensors);
            continue;
          }
          if (!isBlock) {
            await loadStep(host, pass, number, step);
            continue;
          }
          const parts = partsOf(step);
          for (const [at, part] of parts.entries()) {
            await loadStep(host, pass, number, part, undefined, true);
            const stored = tensors.splice(0, part.tensors.length).filter(({ items }) => items.length > 0);
            if (stored.length > 0) await calibrateBlock(place, part, stored);
            // No step reads the last output, but experts read what the router sends them.
            const sends = at === 0 && parts.length > 1;
            if (number < work.layers || sends) await runPortions(host, pass);
          }
        }
        return null;
      },
    ),
  );
}

/** A block, or what of it comes before its experts, then each expert. */
function partsOf({ name, tensors }: ForwardStep): ForwardStep[] {
  const parts: ForwardStep[] = [];
  let part: ForwardStep = { name, tensors: [] };
  for (const [index, tensor] of tensors.entries()) {
    part.tensors.push({ ...tensor, streamed: false });
    if (!tensor.streamed && index + 1 < tensors.length) continue;
    parts.push(part);
    part = { name, tensors: [] };
  }
  return parts;
}

function report(host: JobHost, progress: WorkProgress): void {
  if (host.team.member === 0) host.progress(progress);
}

/** Writes what the first member has stored; the others have it in memory. */
async function write(host: JobHost, tile: StoredTile): Promise<Float64Array> {
  return host.team.member === 0 ? host.write(tile) : tile.sums;
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
    const { slot, items } = tensors[index] as (typeof tensors)[number];
    const item = items[0] ?? 0;
    instance.done(() => pass.bound.begin(number, tensor.slot, pass.work, tensor.task));
    await instance.withObject(
      (module) => module.EmbeddingRotation.make(calibration, slot, host.work(0), item),
      async (rotation) => {
        const sums: Float64Array[] = [];
        for (let tile = 0; tile < tensor.tiles; ++tile) {
          await loadTile(host, pass, tile);
          sums.push(
            await write(
              host,
              instance.tile(() => rotation.store()),
            ),
          );
          if (number === 0) await runPortions(host, pass);
          const isLast = tile + 1 === tensor.tiles;
          stored(name, isLast ? 1 : 0, isLast ? [[item, joined(sums)]] : []);
          report(host, { phase: 'optimize', name, bytes: tensor.bytes / tensor.tiles, tensors: 0 });
        }
      },
    );
  }
}

async function calibrateBlock(
  { host, calibration, stored }: Place,
  { name, tensors: read }: ForwardStep,
  tensors: CalibrationWork['blocks'][number],
): Promise<void> {
  const { instance } = host;
  const bytes = read.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const tasks = JSON.stringify(tensors);
  await instance.withObject(
    (module) => module.BlockCalibrator.make(calibration, host.work(0), tasks),
    async (block) => {
      const parts = instance.call<number[][]>(() => block.parts());
      const own = (portions: number[]) => portions.filter((portion) => runsPortion(host.team, portion)).length;
      const pieces = parts.reduce((sum, portions) => sum + own(portions) + 1, 0);
      const done = (phase: NonNullable<WorkProgress['phase']>) =>
        report(host, { phase, name, bytes: bytes / Math.max(1, pieces), tensors: 0 });
      for (const [part, portions] of parts.entries()) {
        await capture(host, block, part, portions, () => done('calibrate'));
        await host.pause();
        while (!instance.flag(() => block.optimize(part))) {
          await exchange(host, (member) => block.results(member));
          await host.pause();
        }
        done('optimize');
      }
      if (pieces === 0) done('optimize');
      const sums: StoredBlock['sums'] = [];
      const evidence: StoredBlock['evidence'] = [];
      for (const { slot, items } of tensors) {
        await host.pause();
        const found = instance.call<LayerEvidence | null>(() => block.evidence(slot));
        const stored = await write(
          host,
          instance.tile(() => block.store(slot)),
        );
        for (const each of items) {
          if (found) evidence.push([each, found]);
          sums.push([each, stored]);
        }
      }
      stored(name, tensors.length, sums, evidence);
    },
  );
}

/** Shows a part its inputs. Calls `done` after each portion that this member runs. */
async function capture(
  host: JobHost,
  block: BoundBlockCalibrator,
  part: number,
  portions: number[],
  done: () => void,
): Promise<void> {
  const { instance, team } = host;
  const own = portions.filter((portion) => runsPortion(team, portion));
  // Runs its next portion before it waits for another's, so that members need not keep in step.
  let recorded: number | undefined;
  const record = () => {
    const portion = recorded === undefined ? own.shift() : undefined;
    if (portion === undefined) return;
    share(host, () => block.record(part, portion));
    recorded = portion;
    done();
  };
  for (const portion of portions) {
    await host.pause();
    record();
    if (portion !== recorded)
      await receive(host, portion % team.members, (shared) =>
        block.expect(part, JSON.stringify(shared.map(({ length }) => length))),
      );
    instance.done(() => block.show(portion === recorded));
    if (portion === recorded) recorded = undefined;
  }
  if (portions.length === 0) return;
  await exchange(host, (member) => block.sums(member));
}

/** Shares this member's regions with the others, and takes theirs. */
async function exchange(host: JobHost, regionsOf: (member: number) => number): Promise<void> {
  const { team } = host;
  share(host, () => regionsOf(team.member));
  for (let member = 0; member < team.members; ++member)
    if (member !== team.member) await receive(host, member, () => regionsOf(member));
}

/** Shares regions of memory with the other members. */
function share({ instance, team }: JobHost, regions: () => number): void {
  const found = instance.regions(regions);
  if (team.members > 1) team.share(found.map(({ pointer, bytes }) => instance.copyOut(pointer, bytes)));
}

/** Puts what a member shared into the same regions here. */
async function receive(
  { instance, team }: JobHost,
  member: number,
  regions: (shared: Uint8Array[]) => number,
): Promise<void> {
  const shared = await team.receive(member);
  const found = instance.regions(() => regions(shared));
  for (const [index, { pointer }] of found.entries()) instance.copyIn(pointer, shared[index] ?? new Uint8Array());
}
