// Calibration in a run. Static scales and importance come before the final plan (activations.ts). Algorithms that use
// activations process the transformer blocks in a team of workers, whose first stores their tensors.

import { check, isObject } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import { tokenCalibration } from '../api/language_model_kinds.js';
import type { Calibration, Diagnostic, QuantizeModelOptions, Source, TokenCalibration } from '../api/types.js';
import { arrayName } from '../api/values.js';
import type { FoundActivations, LayerEvidence } from '../engine/forward_module.js';
import type { TileSizes } from '../engine/memory.js';
import type { BoundConfig, CalibratedAlgorithm } from '../engine/module.js';
import { OpenedModel } from '../model/model.js';
import { forwardBatchOf, planBlockTeam } from '../plan/forward_plan.js';
import type { OutputFiles } from '../plan/output_files.js';
import { type PackedPlan, packPlan } from '../plan/packed_plan.js';
import type { RunPlanOptions } from '../plan/plan.js';
import type { RunContext } from '../pool/pool.js';
import type { ProgressMeter } from '../pool/progress.js';
import { ErrorSums, type Outcome } from '../pool/report.js';
import type { RunResources } from '../pool/run_resources.js';
import type { CalibrationWork } from '../worker/jobs.js';
import {
  type ActivationSource,
  holdsActivations,
  isIterable,
  observeActivations,
  observeInputs,
} from './activations.js';
import { joinedEvidence, layerCalibration } from './evidence.js';

export interface CalibrationPlan {
  work: CalibrationWork;
  /** Packed tasks of the forward pass: the second entry of `ContextFiles.work`, after the plan's. */
  reads: Uint8Array;
  /** Workers that do it together. */
  members: number;
  /** Stored bytes of the blocks. */
  bytes: number;
  /** Plan indexes of the tensors that calibration stores. */
  items: Set<number>;
  /** Names of those that are not quantized but get new values. */
  rewritten: string[];
}

/** A run's config: its text, itself in the core, and its algorithms that process a model block by block. */
interface RunConfig {
  text: string;
  bound: BoundConfig;
  algorithms: CalibratedAlgorithm[];
}

/** Input for the blocks if no algorithm looks at activations. */
const anyTokens: TokenCalibration = { tokens: { data: [0, 0], shape: [1, 2] } };

/** Null if the config needs no calibration. Errors: argument-invalid (calibration is missing, or tokens do not fit the
 * model), those of forwardPlanOf, tensor-missing, memory-budget. */
async function planCalibration(
  resources: RunResources,
  model: OpenedModel,
  config: RunConfig,
  run: PackedPlan,
  calibration: TokenCalibration | undefined,
): Promise<CalibrationPlan | null> {
  const { hasGraph } = formats.inputs[model.format];
  // Graphs have no transformer blocks: skip algorithms implied by norm folding.
  const algorithms = hasGraph ? config.algorithms.filter(({ isImplied }) => !isImplied) : config.algorithms;
  if (algorithms.length === 0) return null;
  const seeing = algorithms.filter(({ needsInputs }) => needsInputs).map(({ name }) => name);
  if (!calibration && seeing.length > 0) {
    const detail = `${seeing.join(' and ')} ${seeing.length === 1 ? 'needs' : 'need'} calibration: give { tokens } of a few texts, [sequences, length], by the model's own tokenizer, or leave the algorithms out`;
    throw failure('argument-invalid', 'calibration', detail);
  }
  const batch = await forwardBatchOf(resources.instance, model, calibration ?? anyTokens);
  const needsReference = algorithms.some((algorithm) => algorithm.needsReference);
  const holdsOut = algorithms.some((algorithm) => algorithm.holdsOut);
  const { members, keepsStates } = planBlockTeam(resources.memory, batch, needsReference, holdsOut);
  const { tokens, plan } = batch;
  const rotatesStream = algorithms.some((algorithm) => algorithm.rotatesStream);
  const actions = new Map(run.plan.tensors.map(({ name, action }) => [name, action]));
  const numbers = new Map<string, number[]>();
  for (const [item, { name }] of run.items.entries()) numbers.set(name, [...(numbers.get(name) ?? []), item]);
  const items = new Set<number>();
  const steps = rotatesStream ? plan.steps : plan.steps.slice(0, -1);
  const layers = plan.steps.length - 2;
  const embedding = plan.steps[0]?.tensors[0]?.name;
  // If the head is the embedding, the plan has a separate tensor for it, which is rotated differently.
  const stored = (step: number, name: string) =>
    step > layers && name === embedding ? `${plan.steps.at(-1)?.name}.weight` : name;
  const blocks = steps.map(({ tensors }, step) =>
    (rotatesStream || (step > 0 && step <= layers) ? tensors : []).map((tensor) => {
      const { slot, stack = '', part = 0, alternates, fixed } = tensor;
      const name = stored(step, tensor.name);
      const own = numbers.get(name);
      if (fixed || (!own && actions.has(stack) && actions.get(stack) !== 'quantize')) return { slot, items: [] };
      // One tensor may be several of GGUF.
      const found = own ?? numbers.get(stack) ?? [];
      const all = own || alternates ? found : found.slice(Math.min(part, found.length - 1)).slice(0, 1);
      if (all.length === 0) {
        const detail = 'is not stored as plain numbers; calibrate the model as it was before quantization';
        throw failure('tensor-missing', name, detail);
      }
      for (const item of all) items.add(item);
      return { slot, items: all };
    }),
  );
  const bytes = (rotatesStream ? steps : steps.slice(1)).reduce(
    (sum, step) => sum + step.tensors.reduce((all, { bytes }) => all + bytes, 0),
    0,
  );
  const work = {
    architecture: plan.architecture,
    quantization: config.text,
    steps,
    reads: 1,
    layers,
    blocks,
    tokens: tokens.ids,
    lengths: tokens.lengths,
    keepsStates,
  };
  const rewritten = rotatesStream
    ? steps
        .flatMap(({ tensors }, step) => tensors.map(({ name }) => stored(step, name)))
        .filter((name) => actions.get(name) === 'copy')
    : [];
  return { work, members, reads: plan.work, bytes, items, rewritten };
}

/** Runs the calibration. Returns the outcome of each of its tensors, by plan index. */
export async function calibrateBlocks(
  { pool }: RunResources,
  { work, members, bytes, items }: CalibrationPlan,
  context: RunContext,
  output: OutputFiles,
  progress: ProgressMeter,
  signal: AbortSignal | undefined,
): Promise<Map<number, Outcome>> {
  const outcomes = new Map<number, Outcome>();
  const sums = new Map<number, ErrorSums>();
  const evidence = new Map<number, LayerEvidence>();
  const part = { kind: 'calibrate' as const, ...work };
  // A replaced worker starts over, so blocks may come again, with the same bytes.
  const stored = new Set<number>();
  await pool.run(
    context,
    { label: `calibration of ${items.size} tensors`, bytes, parts: [part], members },
    signal,
    ({ stored: block, ...done }) => {
      if (block && stored.has(block.block)) return;
      if (block) {
        stored.add(block.block);
        output.accept(block);
        for (const [item, more] of block.sums) {
          const sum = sums.get(item) ?? new ErrorSums();
          sums.set(item, sum);
          sum.add(more);
          outcomes.set(item, { ...outcomes.get(item), error: sum.result() });
        }
        for (const [item, more] of block.evidence) {
          const all = evidence.get(item);
          evidence.set(item, all ? joinedEvidence(all, more) : more);
          const calibration = layerCalibration(evidence.get(item) as LayerEvidence);
          outcomes.set(item, { error: null, ...outcomes.get(item), calibration });
        }
      }
      progress.advance({ phase: 'calibrate', ...done });
    },
  );
  return outcomes;
}

/** Opened calibration data. `close`: closes files opened for it. */
interface CalibrationInput {
  tokens: TokenCalibration | undefined;
  activations: ActivationSource | undefined;
  close(): Promise<void>;
}

/** Errors: those of open(), argument-invalid. */
export async function given({ open }: RunResources, calibration: Calibration | undefined): Promise<CalibrationInput> {
  const none = { tokens: undefined, activations: undefined, close: async () => {} };
  if (calibration === undefined) return none;
  if (isObject(calibration) && 'tokens' in calibration) {
    return { ...none, tokens: check(calibration, tokenCalibration, 'calibration') };
  }
  const isFile =
    calibration instanceof OpenedModel || arrayName(calibration) === 'Uint8Array' || 'kind' in Object(calibration);
  if (!isFile && isIterable(calibration)) return { ...none, activations: calibration };
  const file = calibration instanceof OpenedModel ? calibration : await open(calibration as Source);
  const close = async () => (file === calibration ? undefined : file.close());
  if (!(file instanceof OpenedModel))
    throw failure('argument-invalid', 'calibration', 'was not opened by this library');
  return holdsActivations(file) ? { ...none, activations: file, close } : { ...none, tokens: { tokens: file }, close };
}

export interface PlannedRun {
  run: PackedPlan;
  /** Whether algorithms of the config process the model block by block. */
  isCalibrated: boolean;
  calibration: CalibrationPlan | null;
  notes: Diagnostic[];
}

/** A remark on rotated tensors: the first names, and their number. */
const rewritten = (names: string[]): Diagnostic => ({
  severity: 'note',
  code: 'rotated',
  where: names[0] ?? '',
  message: `${names.length} tensors that are not quantized are rewritten in their own dtype, because the rotation changes them: ${names.slice(0, 3).join(', ')} ...`,
  hint: 'use them from this output, not from the original model',
});

const unused = (message: string, hint: string): Diagnostic => ({
  severity: 'note',
  code: 'calibration-unused',
  where: 'calibration',
  message,
  hint,
});

type PlanRunOptions = RunPlanOptions & Pick<QuantizeModelOptions, 'calibration' | 'signal' | 'shards' | 'reuse'>;

/** Plans a run, and plans again after calibrating static scales or importance if requested. Errors: those of the plan,
 * of planCalibration, and of observing activations. */
export function planRun(
  resources: RunResources,
  model: OpenedModel,
  config: string,
  options: PlanRunOptions,
  tiles: TileSizes,
): Promise<PlannedRun> {
  const { instance } = resources;
  return instance.withObject(
    (module) => new module.Config(config),
    async (bound) => {
      const algorithms = instance.call<CalibratedAlgorithm[]>(() => bound.calibratedAlgorithms());
      return planned(resources, model, { text: config, bound, algorithms }, options, tiles);
    },
  );
}

async function planned(
  resources: RunResources,
  model: OpenedModel,
  config: RunConfig,
  options: PlanRunOptions,
  tiles: TileSizes,
): Promise<PlannedRun> {
  const { instance } = resources;
  const { algorithms } = config;
  const { signal } = options;
  const namesOutputs = options.shards !== undefined; // for the record of a part
  const packsWhole = options.reuse !== undefined || algorithms.length > 0;
  const prepared = (settings: object) =>
    packPlan(instance, model, config.bound, options, { ...tiles, namesOutputs, packsWhole, ...settings });
  const { tokens, activations, close } = await given(resources, options.calibration);
  try {
    // Smoothing changes layer inputs, so the original model's do not apply.
    const hasOriginalInputs = algorithms.every(({ changesInputs }) => !changesInputs);
    const calibrates = activations !== undefined || (tokens !== undefined && hasOriginalInputs);
    let run = await prepared({ calibrates });
    const { requests } = run;
    const notes: Diagnostic[] = [];
    if (requests !== '') {
      if (!calibrates) {
        const detail = tokens
          ? `weighted observers do not go together with ${algorithms.map(({ name }) => name).join(' and ')}; leave one of them out`
          : 'weighted observers need calibration: give tokens, or the activations that go into the layers';
        throw failure('argument-invalid', 'calibration', detail);
      }
      const { found, unused: count } = activations
        ? await observeActivations(instance, model, requests, activations, signal)
        : await inputsOnTokens(resources, model, requests, tokens as TokenCalibration, signal);
      run = await prepared({ calibrates, activations: found });
      if (count > 0)
        notes.push(
          unused(`${count} batches belong to layers or roles without static scales`, 'they need not be given'),
        );
    }
    const calibration = await planCalibration(resources, model, config, run, tokens);
    if (calibration?.rewritten.length) notes.push(rewritten(calibration.rewritten));
    if (options.calibration !== undefined && !calibration && requests === '') {
      const hint =
        'add static input_tensors, or algorithms to pre_quant_opt_config or algo_config; formats that hold no static scales need none';
      notes.push(unused('nothing in the config needs calibration', hint));
    }
    return { run, isCalibrated: algorithms.length > 0, calibration, notes };
  } finally {
    await close();
  }
}

async function inputsOnTokens(
  resources: RunResources,
  model: OpenedModel,
  requests: string,
  calibration: TokenCalibration,
  signal: AbortSignal | undefined,
): Promise<FoundActivations> {
  const batch = await forwardBatchOf(resources.instance, model, calibration);
  planBlockTeam(resources.memory, batch);
  return observeInputs(resources, model, requests, batch, signal);
}
