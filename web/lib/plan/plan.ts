// The core's plan of a run. Bound objects are freed before the first `await`; what a run needs is copied.

import { PlanReader, type PlanRows } from '../api/plan_json.js';
import type { OutputOptions, Plan, PlannedTensor } from '../api/types.js';
import { makePlan, type PlanRequest, rowsAtOnce } from '../engine/bound_plan.js';
import type { Instance } from '../engine/instance.js';
import type { TileSizes } from '../engine/memory.js';
import type { BoundConfig, BoundPlan } from '../engine/module.js';
import type { OpenedModel } from '../model/model.js';

/** ONNX files that are in a folder already. */
export interface PresentFiles {
  /** By name without folder, the number of its files with external data. */
  files: Record<string, number>;
  /** What config.json says of them. */
  declared: unknown;
}

/** The caller's choices apart from the config. `file`: name of a single output file, if known. */
export interface RunPlanOptions extends OutputOptions {
  file?: string | null;
  /** Whether output goes to a folder with subfolders. */
  folder?: boolean | undefined;
  /** ONNX files that are in the folder already. */
  present?: PresentFiles | null;
  /** Machines that share the run: a file that can be split is split for them, unless a size is asked for. */
  parts?: number | undefined;
}

export interface CorePlanOptions extends TileSizes {
  /** Whether calibration will supply static inputs and outputs, and weighted observers. */
  calibrates?: boolean;
  activations?: object[];
  /** Whether rows of the plan name their outputs; default true. */
  namesOutputs?: boolean;
  /** Whether all tasks are packed in one piece, which every worker gets; default true. */
  packsWhole?: boolean;
}

/** A config's text, or the config in the core, which is parsed once for several plans. */
export type PlanConfig = string | BoundConfig;

/** Plans a run and lends the bound plan to `use`. Errors: config-invalid, format-unsupported, not-implemented... */
export function withPlan<T>(
  instance: Instance,
  model: OpenedModel,
  config: PlanConfig,
  options: RunPlanOptions,
  settings: CorePlanOptions,
  use: (bound: BoundPlan, plan: Plan) => T,
  constants: Uint8Array = new Uint8Array(),
): T {
  if (typeof config !== 'string') return planned(instance, model, config, options, settings, use, constants);
  const own = instance.run((module) => new module.Config(config));
  try {
    return planned(instance, model, own, options, settings, use, constants);
  } finally {
    instance.free(own);
  }
}

/** What the core is asked for. */
export function planRequest(
  model: OpenedModel,
  { format, onnx, gguf, includeTowers, experts, file, folder, present, parts }: RunPlanOptions,
  { namesOutputs: _, packsWhole: __, ...settings }: CorePlanOptions,
  constants: Uint8Array = new Uint8Array(),
): PlanRequest {
  const { imatrix = new Uint8Array(), ...given } = gguf ?? {};
  const included = { include_towers: includeTowers === true, experts };
  const names = { file, folder, present, parts, name: model.name };
  return { options: { format, onnx, gguf: given, ...included, ...names, ...settings }, imatrix, constants };
}

function planned<T>(
  instance: Instance,
  model: OpenedModel,
  config: BoundConfig,
  options: RunPlanOptions,
  settings: CorePlanOptions,
  use: (bound: BoundPlan, plan: Plan) => T,
  constants: Uint8Array,
): T {
  const request = planRequest(model, options, settings, constants);
  const bound = makePlan(instance, model.indexFor(instance), config, request);
  try {
    const { format, ...rest } = instance.call<Omit<Plan, 'tensors'>>(() => bound.json());
    const reader = new PlanReader(rest.files, {
      model: model.tensors,
      withoutOutputs: settings.namesOutputs === false,
    });
    while (reader.tensors.length < rest.totals.tensors) {
      const first = reader.tensors.length;
      reader.add(instance.call<PlanRows>(() => bound.tensors(first, first + rowsAtOnce)));
    }
    // Without outputs only where none is asked for: `namesOutputs`.
    return use(bound, { format, tensors: reader.tensors as PlannedTensor[], ...rest });
  } finally {
    instance.free(bound);
  }
}
