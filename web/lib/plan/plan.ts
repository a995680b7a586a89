// The core's plan of a run. Bound objects are freed before the first `await`; what a run needs is copied.

import { failure } from '../api/errors.js';
import { PlanReader, type PlanRows } from '../api/plan_json.js';
import type { Plan, PlanOptions } from '../api/types.js';

import type { BoundWork } from '../engine/bound_work.js';
import type { Instance } from '../engine/instance.js';
import type { TileSizes } from '../engine/memory.js';
import type { BoundPlan, HeapBytes, PlanTask } from '../engine/module.js';
import type { OpenedModel } from '../model/model.js';
import type { WorkItem } from '../pool/job_queue.js';
import type { PlannedFile } from './output_files.js';

/** The caller's choices besides the config. `file`: name of a single output file, if known. */
export interface PlanChoices extends PlanOptions {
  file?: string | null;
  /** Whether output goes to a folder with subfolders. */
  folder?: boolean | undefined;
}

export interface PlanSettings extends TileSizes {
  /** Whether calibration will supply static inputs and outputs, and weighted observers. */
  calibrates?: boolean;
  activations?: object[];
}

const rowsAtOnce = 1024;

/** A byte range of a file that a plan needs before it can run. */
interface Constant {
  file: number;
  begin: number;
  bytes: number;
}

function expertChoice(include?: boolean, exclude?: boolean): 'include' | 'exclude' | undefined {
  if (include && exclude)
    throw failure('argument-invalid', 'excludeExperts', 'contradicts includeExperts; set only one of them');
  return include ? 'include' : exclude ? 'exclude' : undefined;
}

/** Plans a run and lends the bound plan to `use`. Errors: config-invalid, format-unsupported, not-implemented... */
export function withPlan<T>(
  instance: Instance,
  model: OpenedModel,
  config: string,
  { format, onnx, gguf, includeTowers, includeExperts, excludeExperts, file, folder }: PlanChoices,
  settings: PlanSettings,
  use: (bound: BoundPlan, plan: Plan) => T,
  constants: Uint8Array = new Uint8Array(),
): T {
  const index = model.indexFor(instance);
  const imatrix = gguf?.imatrix ?? new Uint8Array();
  const bound = instance.withBytes(imatrix, (pointer) =>
    instance.withBytes(constants, (at) => {
      const given = { ...gguf, imatrix: pointer, imatrixBytes: imatrix.length };
      const known = { constants: at, constantsBytes: constants.length };
      const included = {
        include_towers: includeTowers === true,
        experts: expertChoice(includeExperts, excludeExperts),
      };
      const options = { format, onnx, gguf: given, ...included, file, folder, name: model.name, ...known, ...settings };
      return instance.run((module) => module.makePlan(index, config, JSON.stringify(options)));
    }),
  );
  try {
    instance.call<null>(() => bound.error());
    const { format, ...rest } = instance.call<Omit<Plan, 'tensors'>>(() => bound.json());
    const reader = new PlanReader(rest.files);
    while (reader.tensors.length < rest.totals.tensors) {
      const first = reader.tensors.length;
      reader.add(instance.call<PlanRows>(() => bound.tensors(first, first + rowsAtOnce)));
    }
    return use(bound, { format, tensors: reader.tensors, ...rest });
  } finally {
    instance.free(bound);
  }
}

interface Literals extends HeapBytes {
  places: [offset: number, begin: number, bytes: number][];
}

/** A task of a plan; `tensor` and `outputs` as in PlanTask. */
export type PlannedItem = WorkItem & Pick<PlanTask, 'tensor' | 'outputs'>;

export interface PreparedRun {
  plan: Plan;
  items: PlannedItem[];
  work: Uint8Array<ArrayBuffer>;
  files: PlannedFile[];
  /** Text of config.json and of the shard index of a folder output; "" if absent. */
  outputConfig: string;
  shardMap: string;
  /** What calibration must find, for the core; "" for nothing. */
  requests: string;
}

/** Plans a run, again if some of the model's values are needed. Errors: those of withPlan and of reading. */
export async function prepareRun(
  instance: Instance,
  model: OpenedModel,
  config: string,
  choices: PlanChoices,
  settings: PlanSettings,
): Promise<PreparedRun> {
  const { run, wanted } = withPlan(instance, model, config, choices, settings, (bound, plan) => ({
    run: prepare(instance, model, bound, plan),
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
    (bound, plan) => prepare(instance, model, bound, plan),
    constants,
  );
}

/** Copies literals, tasks and the index from a bound plan. */
function prepare(instance: Instance, model: OpenedModel, bound: BoundPlan, plan: Plan): PreparedRun {
  const files = plan.files.map(({ name, bytes }, file) => {
    const known = instance.call<Literals>(() => bound.fileLiterals(file));
    const text = instance.copyOut(known.pointer, known.bytes);
    const literals = known.places.map(([offset, begin, length]) => ({
      offset,
      bytes: text.subarray(begin, begin + length),
    }));
    return { name, bytes, literals };
  });
  const work = instance.bytes(() => bound.pack());
  const items = instance
    .call<PlanTask[]>(() => bound.work())
    .map(
      ({ observePasses, observedInParts, joinedTiles, ...planned }, task): PlannedItem => ({
        ...planned,
        name: plan.tensors[planned.tensor]?.name ?? '',
        task: { quantize: { work: 0, task }, observePasses, observedInParts, joinedTiles },
        merge: (states) => withWork(instance, work, (unpacked) => mergedState(instance, unpacked, task, states)),
      }),
    );
  return {
    plan,
    items,
    work,
    files,
    outputConfig: instance.call<string>(() => bound.outputConfig(model.configText)),
    shardMap: instance.run(() => bound.shardMap()),
    requests: instance.run(() => bound.activationRequests()),
  };
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
  const session = instance.run((module) => new module.TensorSession(work, task));
  try {
    instance.call<number>(() => session.observePasses());
    for (const state of states) {
      instance.withBytes(state, (pointer) => instance.call<null>(() => session.takeState(pointer, state.byteLength)));
    }
    return instance.bytes(() => session.state());
  } finally {
    instance.free(session);
  }
}
