// What a run needs of a bound plan: its files, their known bytes, and its tasks, packed for workers.

import { SharedValues } from '../api/plan_json.js';
import type { Plan } from '../api/types.js';
import { rowsAtOnce } from '../engine/bound_plan.js';
import type { BoundWork } from '../engine/bound_work.js';
import type { Instance } from '../engine/instance.js';
import type { BoundPlan, PlanTask } from '../engine/module.js';
import type { OpenedModel } from '../model/model.js';
import type { WorkItem } from '../pool/job_queue.js';
import type { TaskNumber } from '../worker/jobs.js';
import type { PlannedFile } from './output_files.js';
import { type CorePlanOptions, type PlanConfig, type RunPlanOptions, withPlan } from './plan.js';

/** In one piece of packed work. A worker has only the pieces that its job names. */
const tasksAtOnce = 256;

/** A byte range of a file that a plan needs before it can run. */
interface Constant {
  file: number;
  begin: number;
  bytes: number;
}

interface Literals {
  bytes: number;
  places: [offset: number, begin: number, bytes: number][];
}

/** A task of a plan; `tensor` and `outputs` as in PlanTask. */
export type PlannedItem = WorkItem & Pick<PlanTask, 'tensor' | 'outputs'>;

export interface PackedPlan {
  plan: Plan;
  items: PlannedItem[];
  /** Packed tasks, in pieces that `TaskNumber` counts; one piece if `packsWhole`. */
  work: Uint8Array<ArrayBuffer>[];
  files: PlannedFile[];
  /** Text of config.json and of the shard index of a folder output; "" if absent. */
  outputConfig: string;
  shardMap: string;
  /** What calibration must find, for the core; "" for nothing. */
  requests: string;
}

/** Plans a run, again if some of the model's values are needed. Errors: those of withPlan and of reading. */
export async function packPlan(
  instance: Instance,
  model: OpenedModel,
  config: PlanConfig,
  choices: RunPlanOptions,
  settings: CorePlanOptions,
): Promise<PackedPlan> {
  const { run, wanted } = withPlan(instance, model, config, choices, settings, (bound, plan) => ({
    run: prepare(instance, bound, plan, settings),
    wanted: instance.call<Constant[]>(() => bound.constants()),
  }));
  if (wanted.length === 0) return run;
  const pieces = await Promise.all(
    wanted.map(async ({ file, begin, bytes }) => {
      const source = model.weights[file];
      if (!source) throw new RangeError(`file ${file} of the model does not exist`);
      return source.read(begin, bytes);
    }),
  );
  const constants = new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
  return withPlan(
    instance,
    model,
    config,
    choices,
    settings,
    (bound, plan) => prepare(instance, bound, plan, settings),
    constants,
  );
}

/** Copies literals, tasks and the index from a bound plan. */
function prepare(instance: Instance, bound: BoundPlan, plan: Plan, settings: CorePlanOptions): PackedPlan {
  const files = plan.files.map(({ name, bytes }, file) => {
    const known = instance.call<Literals>(() => bound.fileLiterals(file));
    const text = new Uint8Array(known.bytes);
    for (let done = 0, piece = 0; done < text.length; ++piece) {
      const next = instance.region(() => bound.literalBytes(file, piece));
      const at = done;
      instance.lend(next.pointer, next.bytes, (view) => text.set(view, at));
      done += next.bytes;
    }
    const literals = known.places.map(([offset, begin, length]) => ({
      offset,
      bytes: text.subarray(begin, begin + length),
    }));
    return { name, bytes, literals };
  });
  const { work, items } = plannedWork(instance, bound, plan, settings.packsWhole === false ? tasksAtOnce : everything);
  return {
    plan,
    items,
    work,
    files,
    outputConfig: instance.call<string>(() => bound.outputConfig()),
    shardMap: instance.run(() => bound.shardMap()),
    requests: instance.run(() => bound.activationRequests()),
  };
}

/** More than the tasks of any plan. */
const everything = 2 ** 32 - 1;

type QuantizeTask = Extract<WorkItem['task'], { quantize: object }>;

/** What the tasks of a plan have in common. */
interface PackedWork {
  /** In one piece. */
  atOnce: number;
  merge(task: TaskNumber, states: Uint8Array[]): Uint8Array;
}

/** A task of a plan: a class that keeps no more than a number of what can be told from it, because large plans have many. */
class Item implements PlannedItem {
  constructor(
    readonly name: string,
    readonly bytes: number,
    readonly tiles: number,
    readonly tensor: number,
    readonly outputs: number[],
    private readonly number: number,
    private readonly passes: Omit<QuantizeTask, 'quantize'>,
    private readonly packed: PackedWork,
  ) {}

  get task(): QuantizeTask {
    const { atOnce } = this.packed;
    return { quantize: { work: Math.floor(this.number / atOnce), task: this.number % atOnce }, ...this.passes };
  }

  merge(states: Uint8Array[]): Uint8Array {
    return this.packed.merge(this.task.quantize, states);
  }
}

/** All tasks of a plan, packed `atOnce` to a piece. */
export function plannedWork(
  instance: Instance,
  bound: BoundPlan,
  plan: Plan,
  atOnce = everything,
): Pick<PackedPlan, 'work' | 'items'> {
  const work: Uint8Array<ArrayBuffer>[] = [];
  const items: PlannedItem[] = [];
  const packed: PackedWork = {
    atOnce,
    merge: ({ work: piece, task }, states) =>
      withWork(instance, work[piece] ?? new Uint8Array(), (tasks) => mergedState(instance, tasks, task, states)),
  };
  const [outputs, passes] = [new SharedValues<number[]>(), new SharedValues<Omit<QuantizeTask, 'quantize'>>()];
  for (let first = 0; ; first = items.length) {
    const tasks = instance.call<PlanTask[]>(() => bound.work(first, first + rowsAtOnce));
    for (const { tensor, bytes, tiles, outputs: files, ...rest } of tasks) {
      const name = plan.tensors[tensor]?.name ?? '';
      const [own, order] = [outputs.shared(files), passes.shared(rest)];
      items.push(new Item(name, bytes, tiles, tensor, own, items.length, order, packed));
    }
    if (tasks.length < rowsAtOnce) break;
  }
  for (let first = 0; first === 0 || first < items.length; first += atOnce)
    work.push(instance.bytes(() => bound.pack(first, Math.min(first + atOnce, everything))));
  return { work, items };
}

export function withWork<T>(instance: Instance, packed: Uint8Array, use: (work: BoundWork) => T): T {
  const work = instance.unpack(packed);
  try {
    return use(work);
  } finally {
    instance.free(work);
  }
}

function mergedState(instance: Instance, work: BoundWork, task: number, states: Uint8Array[]): Uint8Array {
  const session = instance.make((module) => module.TensorSession.make(work, task));
  try {
    for (const state of states) {
      instance.withBytes(state, (pointer) => instance.done(() => session.takeState(pointer, state.byteLength / 4)));
    }
    return instance.bytes(() => session.state());
  } finally {
    instance.free(session);
  }
}
