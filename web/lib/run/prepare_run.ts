// First step of a run: its plan, and a target that can take its files.

import { type CoreErrorCode, failure, QuantizationError } from '../api/errors.js';
import { formats, outputFormatsOf } from '../api/formats.js';
import { loaded } from '../api/loaded.js';
import type { Diagnostic, Plan, QuantizeModelOptions, RunIdentity } from '../api/types.js';
import type { PlannedRun } from '../calibration/calibrate.js';
import { sizesFor } from '../engine/memory.js';
import { abortable } from '../io/abort.js';
import { checkNames, type OutputTarget } from '../io/target.js';
import type { OpenedModel } from '../model/model.js';
import type { PresentFiles, RunPlanOptions } from '../plan/plan.js';
import type { RunResources } from '../pool/run_resources.js';
import { newFiles } from './onnx_folder.js';
import { runIdentity } from './run_identity.js';
import type { PartOfRun } from './shard_range.js';
import type { SmallFile } from './sidecar_files.js';

const calibratedNote: Diagnostic = {
  severity: 'note',
  code: 'not-resumable',
  where: '',
  message: 'calibrated configs go through the whole model, block by block: no file is kept if this run is interrupted',
};

/** Checks what a single-file target cannot store. Errors: target-invalid. */
function checkSingle(model: OpenedModel, plan: Plan, target: OutputTarget): Diagnostic[] {
  const named = outputFormatsOf(target.fileName ?? '');
  const container = formats.inputs[formats.outputs[plan.format].container];
  if (named.length > 0 && !named.includes(plan.format))
    throw failure('target-invalid', target.fileName ?? '', `this file name is for another format than ${plan.format}`);
  if (plan.files.length > 1 && !(container.dataExtensions.length > 0 && target.takesData)) {
    const detail = `holds a single file, but the output has ${plan.files.length}; give a folder`;
    throw failure('target-invalid', 'target', detail);
  }
  const parts = model.parts.flatMap(({ files }) => files[0]?.name ?? []);
  const left: Diagnostic[] = parts.map((where) => ({
    severity: 'warning',
    code: 'onnx-parts',
    where,
    message: 'is another part of this model, and is not written: the output is a single file',
    hint: 'give a folder as the target',
  }));
  if (plan.quantizationConfig === null) return left;
  return [
    ...left,
    {
      severity: 'note',
      code: 'config-not-written',
      where: '',
      message: 'a single file was written, without the config.json that says how to decode it',
      hint: 'give a folder as the target, or put quantizationConfig of the plan into config.json',
    },
  ];
}

/** A folder without config.json gets one that only says how weights are decoded. Plans name no class for it. */
function checkFolder(plan: Plan, model: OpenedModel): Diagnostic[] {
  if (plan.quantizationConfig === null || model.config !== null) return [];
  return [
    {
      severity: 'note',
      code: 'config-not-written',
      where: 'config.json',
      message:
        'the model has none: the one that is written says only how to decode the weights, and names no class of a model',
      hint: "add the keys of the model's own config.json, by which runtimes choose the class",
    },
  ];
}

export interface QuantizeRequest {
  resources: RunResources;
  model: OpenedModel;
  config: string;
  target: OutputTarget;
  options: QuantizeModelOptions;
  /** Of an ONNX model that goes into a folder. */
  graph?: OnnxPart;
}

/** One of several graphs that are written into one folder. */
export interface OnnxPart {
  /** Files that are there before. */
  present: PresentFiles | null;
  /** The small files are written with the last one. */
  isLast: boolean;
}

/** A planned run whose target takes all of its files. */
export interface PreparedRun extends QuantizeRequest, PlannedRun {
  choices: RunPlanOptions;
  identity: RunIdentity;
  sizes: ReturnType<typeof sizesFor>;
  /** Set if several machines share the run. */
  part: PartOfRun | undefined;
  small: SmallFile[];
}

/** onnxruntime-genai's description of a model: it names the ONNX file, which lies next to it. */
const genaiConfig = 'genai_config.json';

/** Names of outputs: in folders transformers.js's, but onnxruntime-genai finds its model under the name that it has. */
async function namesOf(model: OpenedModel, target: OutputTarget): Promise<Pick<RunPlanOptions, 'file' | 'folder'>> {
  const [weights] = model.weights;
  if (target.isFolder && model.format === 'onnx' && weights) {
    const text = new TextDecoder().decode((await model.siblingFile(genaiConfig)) ?? new Uint8Array());
    if (text.includes(JSON.stringify(weights.name))) return { file: weights.name, folder: false };
  }
  return { file: target.fileName, folder: target.takesFolders };
}

/** The error of a plan that does nothing; null: it does something. */
export function idleError({ diagnostics }: Plan): QuantizationError | null {
  const [idle] = diagnostics.filter(({ severity }) => severity === 'error');
  if (!idle) return null;
  const { code, where, message: detail } = idle;
  return new QuantizationError({ code: code as CoreErrorCode, where, detail, diagnostics });
}

/** Plans the run, calibrating static scales if needed. Errors: those of planRun, target-invalid, target-exists. */
export async function prepare(request: QuantizeRequest): Promise<PreparedRun> {
  const { resources, model, config, target, options } = request;
  options.signal?.throwIfAborted();
  const inputBytes = model.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const sizes = sizesFor(resources.memory, inputBytes);
  resources.pool.prepare(sizes.workers);
  // Loaded with the first run, not with the page.
  const { planRun } = await loaded(import('../calibration/calibrate.js'));
  const present = request.graph?.present ?? null;
  const choices = { ...options, ...(await namesOf(model, target)), present, parts: options.shards?.of };
  const planned = await abortable(options.signal, planRun(resources, model, config, choices, sizes.tiles));
  const { plan } = planned.run;
  const idle = idleError(plan);
  if (idle && !(request.graph && idle.code === 'nothing-quantized')) throw idle;
  const identity = runIdentity(resources.instance, planned.run);
  const part =
    options.shards && (await loaded(import('./shard_range.js'))).partOf(model, planned, identity, options.shards);
  const unkept = options.resume && planned.calibration ? [calibratedNote] : [];
  const hasSmall =
    target.isFolder &&
    formats.outputs[plan.format].hasSiblingFiles &&
    (options.shards?.part ?? 1) === 1 &&
    request.graph?.isLast !== false;
  const sidecar = hasSmall ? await (await loaded(import('./sidecar_files.js'))).sidecarFiles(model, planned.run) : null;
  const configNotes = target.isFolder ? checkFolder(plan, model) : checkSingle(model, plan, target);
  const notes = [...configNotes, ...planned.notes, ...unkept, ...(sidecar?.notes ?? [])];
  let small = sidecar?.small ?? [];
  let replaced: ReadonlySet<string> = new Set();
  if (request.graph && small.length > 0)
    ({ written: small, replaced } = await newFiles(target, small, options.overwrite === true));
  const names = part?.names ?? [...plan.files, ...small].map((file) => file.name);
  if (target.isFolder) checkNames(names);
  await target.check(names, replaced);
  return { ...request, ...planned, choices, identity, sizes, part, small, notes };
}
