// Reuses tensors of an equal former task (the core decides): workers copy their bytes from its output. Headers are equal
// for every fine-tune of an architecture, so unless the report is known to be of this very model, each tensor's error is
// measured again between model and output: it is that of the report only if the tensor was made from these weights.

import { failure } from '../api/errors.js';
import type { FormerRun, RunIdentity, RunReport, TensorError } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import type { TileSizes } from '../engine/memory.js';
import type { BoundConfig, HeapBytes } from '../engine/module.js';
import type { FileSource } from '../io/file_source.js';
import { OpenedModel } from '../model/model.js';
import { type PackedPlan, packPlan, withWork } from '../plan/packed_plan.js';
import type { RunPlanOptions } from '../plan/plan.js';
import type { WorkItem } from '../pool/job_queue.js';
import { measureErrors, type RunResources } from '../pool/run_resources.js';
import { comparisonOf } from './compare.js';
import { runIdentity } from './run_identity.js';

export interface Reused {
  /** By task: copies of its components that replace it. */
  copies: Map<number, WorkItem[]>;
  /** Errors measured by the former run, by task. */
  errors: Map<number, TensorError | null>;
  /** Files of the former output; tasks number them after the model's. */
  sources: readonly FileSource[];
  /** Packed copies: the second entry of `ContextFiles.work`, after the plan's. */
  work: Uint8Array;
}

/** The core's answer; null for pairs with different outputs. */
type Copies = ({ bytes: number; tiles: number }[] | null)[];

const mismatchOf = (where: string, detail: string) =>
  failure('argument-invalid', 'reuse', `${where} ${detail}; give config and output of one run, or leave reuse out`);

/** The former output's files in plan order, after comparing their known bytes. Errors: argument-invalid. */
async function filesOf({ files }: PackedPlan, output: OpenedModel): Promise<FileSource[]> {
  const found: FileSource[] = [];
  for (const { name, bytes, literals } of files) {
    const source = files.length === 1 ? output.weights[0] : output.weights.find((file) => file.name === name);
    if (!source || output.weights.length !== files.length) throw mismatchOf(name, 'is not in the output');
    if (source.size !== bytes)
      throw mismatchOf(source.name, `has ${source.size} bytes, but this config gives ${bytes}`);
    for (const { offset, bytes: known } of literals) {
      const stored = await source.read(offset, known.byteLength);
      if (known.some((byte, i) => byte !== stored[i])) throw mismatchOf(source.name, 'has another header');
    }
    found.push(source);
  }
  return found;
}

/** What replaces the first task of each pair, and all packed tasks. */
function copiesOf(instance: Instance, now: PackedPlan, then: PackedPlan, pairs: [number, number][], options: object) {
  const [ours = new Uint8Array(), theirs = new Uint8Array()] = [now.work[0], then.work[0]];
  return withWork(instance, ours, (work) =>
    withWork(instance, theirs, (former) => {
      const { facts, regions } = instance.parts<Copies>(() =>
        work.copies(former, JSON.stringify(pairs), JSON.stringify(options)),
      );
      const { pointer, bytes } = regions.work as HeapBytes;
      return { copies: facts, work: instance.copyOut(pointer, bytes) };
    }),
  );
}

function reasonOf(identity: RunIdentity | undefined, library: string): string {
  if (!identity) return 'does not say how the run was done: it is of an earlier version of this library';
  if (identity.library !== library) return `is of version ${identity.library} of this library; this is ${library}`;
  return 'is of a run with another config, importance matrix, calibration or options than these';
}

/** The measured sums differ in their order (tiles), to about 1e-8 of the value. */
const errorTolerance = 1e-7;
const isNear = (a: number, b: number) =>
  a === b || Math.abs(a - b) <= errorTolerance * Math.min(Math.abs(a), Math.abs(b));

/** Names of the tensors whose output has the reported error against the model. Errors: argument-invalid naming one that has another. */
async function proven(
  resources: RunResources,
  model: OpenedModel,
  { output, report }: { output: OpenedModel; report: RunReport },
  names: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<Set<string>> {
  const { pairs, work } = comparisonOf(resources.instance, model, output);
  const items = pairs.filter(({ name }) => names.has(name));
  const bytes = items.reduce((sum, item) => sum + item.bytes, 0);
  const sizes = { input: bytes, job: resources.memory.jobBytes };
  const schedule = await measureErrors(
    resources,
    { models: [model, output], work, sendsByJob: true },
    items,
    sizes,
    signal,
  );
  const reported = new Map(report.tensors.map(({ name, error }) => [name, error]));
  const found = new Set<string>();
  for (const [item, { name }] of items.entries()) {
    const [error, former] = [schedule.error(item), reported.get(name)];
    if (!error || !former) continue;
    if (!isNear(error.mse, former.mse) || !isNear(error.maxAbs, former.maxAbs))
      throw mismatchOf(
        name,
        `was made from other weights: its mean squared error against this model is ${error.mse}, the report says ${former.mse}`,
      );
    found.add(name);
  }
  return found;
}

/** `isSource`: the report is known to be of this model. Errors: the plan's, argument-invalid. */
export async function reuseTensors(
  resources: RunResources,
  model: OpenedModel,
  run: PackedPlan,
  { output, report }: FormerRun,
  { config, isSource }: { config: BoundConfig; isSource: boolean },
  { signal, ...choices }: RunPlanOptions & { signal?: AbortSignal | undefined },
  tiles: TileSizes,
): Promise<Reused> {
  const { instance } = resources;
  if (!(output instanceof OpenedModel)) throw mismatchOf('output', 'was not made by open() of this library');
  const former = await packPlan(instance, model, config, choices, tiles);
  const { library, tasks } = runIdentity(instance, former);
  if (report.identity?.library !== library || report.identity.tasks !== tasks)
    throw mismatchOf('report', reasonOf(report.identity, library));
  const sources = await filesOf(former, output);
  const before = new Map(former.items.map(({ name }, number) => [name, number]));
  const measured = new Map(report.tensors.map(({ name, error }) => [name, error]));
  const isAsked = (name: string) => before.has(name) && measured.has(name);
  const asked = new Set(
    run.plan.tensors.flatMap(({ name, action }) => (action !== 'copy' && isAsked(name) ? [name] : [])),
  );
  const reusable = isSource ? asked : await proven(resources, model, { output, report }, asked, signal);
  const pairs = run.items.flatMap(({ name, tensor }, number): [number, number][] => {
    const planned = run.plan.tensors[tensor];
    const known = before.get(name);
    return !planned || known === undefined || !reusable.has(name) ? [] : [[number, known]];
  });
  const options = { ...tiles, firstFile: model.weights.length };
  const { copies: found, work } = copiesOf(instance, run, former, pairs, options);
  const copies = new Map<number, WorkItem[]>();
  const errors = new Map<number, TensorError | null>();
  let copied = 0;
  for (const [place, [number]] of pairs.entries()) {
    const [item, pieces] = [run.items[number], found[place]];
    if (!item || !pieces) continue;
    const items = pieces.map((piece) => {
      const quantize = { work: 1, task: copied++ };
      const task = { quantize, observePasses: 0, observedInParts: false, joinedTiles: 0 };
      return { name: item.name, ...piece, task, merge: () => new Uint8Array(0) };
    });
    copies.set(number, items);
    errors.set(number, measured.get(item.name) ?? null);
  }
  return { copies, errors, sources, work };
}
