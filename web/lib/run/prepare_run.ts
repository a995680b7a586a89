// First step of a run: its plan, and a target that can take its files.

import { type CoreErrorCode, failure, QuantizationError } from '../api/errors.js';
import { formats, outputFormatsOf } from '../api/formats.js';
import { loaded } from '../api/loaded.js';
import type { Diagnostic, Plan, QuantizeModelOptions } from '../api/types.js';
import type { PlannedRun } from '../calibration/calibrate.js';
import { sizesFor } from '../engine/memory.js';
import { abortable } from '../io/abort.js';
import { checkNames, type OutputTarget } from '../io/target.js';
import type { OpenedModel } from '../model/model.js';
import type { RunPlanOptions } from '../plan/plan.js';
import type { RunResources } from '../pool/run_resources.js';
import type { PartOfRun } from './shard_range.js';
import type { SmallFile } from './sidecar_files.js';

const calibratedNote: Diagnostic = {
  severity: 'note',
  code: 'not-resumable',
  where: '',
  message: 'calibrated configs go through the whole model, block by block: no file is kept if this run is interrupted',
};

/** Checks what a single-file target cannot store. Errors: target-invalid. */
function checkSingle(plan: Plan, target: OutputTarget): Diagnostic[] {
  const named = outputFormatsOf(target.fileName ?? '');
  const container = formats.inputs[formats.outputs[plan.format].container];
  if (named.length > 0 && !named.includes(plan.format))
    throw failure('target-invalid', target.fileName ?? '', `this file name is for another format than ${plan.format}`);
  if (plan.files.length > 1 && !(container.dataExtensions.length > 0 && target.takesData)) {
    const detail = `holds a single file, but the output has ${plan.files.length}; give a folder`;
    throw failure('target-invalid', 'target', detail);
  }
  if (plan.quantizationConfig === null) return [];
  return [
    {
      severity: 'note',
      code: 'config-not-written',
      where: '',
      message: 'a single file was written, without the config.json that says how to decode it',
      hint: 'give a folder as the target, or put quantizationConfig of the plan into config.json',
    },
  ];
}

/** The caller's options, and the library version for resumed runs. */
export interface RunOptions extends QuantizeModelOptions {
  library: string;
}

export interface QuantizeRequest {
  resources: RunResources;
  model: OpenedModel;
  config: string;
  target: OutputTarget;
  options: RunOptions;
}

/** A planned run whose target takes all of its files. */
export interface PreparedRun extends QuantizeRequest, PlannedRun {
  choices: RunPlanOptions;
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

/** Plans the run, calibrating static scales if needed. Errors: those of planRun, target-invalid. */
export async function prepare(request: QuantizeRequest): Promise<PreparedRun> {
  const { resources, model, config, target, options } = request;
  options.signal?.throwIfAborted();
  const inputBytes = model.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const sizes = sizesFor(resources.memory, inputBytes);
  resources.pool.prepare(sizes.workers);
  // Loaded with the first run, not with the page.
  const { planRun } = await loaded(import('../calibration/calibrate.js'));
  const choices = { ...options, ...(await namesOf(model, target)) };
  const planned = await abortable(options.signal, planRun(resources, model, config, choices, sizes.tiles));
  const { plan } = planned.run;
  const [idle] = plan.diagnostics.filter(({ severity }) => severity === 'error');
  if (idle)
    throw new QuantizationError({
      code: idle.code as CoreErrorCode,
      where: idle.where,
      detail: idle.message,
      diagnostics: plan.diagnostics,
    });
  const part =
    options.shards &&
    (await loaded(import('./shard_range.js'))).partOf(resources.instance, model, planned, options.shards);
  const unkept = options.resume && planned.calibration ? [calibratedNote] : [];
  const notes = [...(target.isFolder ? [] : checkSingle(plan, target)), ...planned.notes, ...unkept];
  const hasSmall = target.isFolder && formats.outputs[plan.format].hasSiblingFiles && (options.shards?.part ?? 1) === 1;
  const small = hasSmall ? await (await loaded(import('./sidecar_files.js'))).sidecarFiles(model, planned.run) : [];
  const names = part?.names ?? [...plan.files, ...small].map((file) => file.name);
  if (target.isFolder) checkNames(names);
  await target.check(names);
  return { ...request, ...planned, choices, sizes, part, small, notes };
}
