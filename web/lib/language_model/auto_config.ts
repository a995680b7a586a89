// Finds a config for a byte budget: measures every linear layer of the transformer blocks with every candidate, then
// replaces the cheapest candidates by better ones, best gain per byte first.

import { check, checkedWith, jsonText, shown } from '../api/arguments.js';
import { failure, QuantizationError } from '../api/errors.js';
import { autoConfigOptions, tokenCalibration } from '../api/language_model_kinds.js';
import type { AutoConfig, AutoConfigOptions, AutoLayer, Plan, QuantizationSpec } from '../api/types.js';
import { plainOf } from '../api/values.js';
import type { BoundPlan } from '../engine/module.js';
import type { OpenedModel } from '../model/model.js';
import { forwardBatchOf, planBlockTeam } from '../plan/forward_plan.js';
import { plannedWork } from '../plan/packed_plan.js';
import { withPlan } from '../plan/plan.js';
import { ProgressMeter } from '../pool/progress.js';
import { type RunInputs, type RunResources, runOne } from '../pool/run_resources.js';
import type { SensitivityWork } from '../worker/jobs.js';
import { allocateBits } from './bit_budget.js';

const groups = (dtype: 'int3' | 'int4', group_size: number): QuantizationSpec => ({
  dtype,
  qscheme: 'per_group',
  group_size,
  ch_axis: -1,
  symmetric: true,
  scale_sign: 'signed',
  calibrated_refit: true,
});
const channels = (dtype: 'int4' | 'int8'): QuantizationSpec => ({
  dtype,
  qscheme: 'per_channel',
  ch_axis: 0,
  symmetric: true,
  ...(dtype === 'int4' && { scale_sign: 'signed', calibrated_refit: true }),
});
/** By size; not every format has int3. */
const autoCandidates: readonly QuantizationSpec[] = [
  groups('int3', 64),
  channels('int4'),
  groups('int4', 128),
  groups('int4', 64),
  groups('int4', 32),
  channels('int8'),
];

type Budget = { key: 'targetBits' | 'targetBytes' | 'maxLoss'; value: number };

function budgetOf(options: AutoConfigOptions): Budget {
  const keys = (['targetBits', 'targetBytes', 'maxLoss'] as const).filter((key) => options[key] !== undefined);
  const [key] = keys;
  if (keys.length !== 1 || key === undefined)
    throw failure(
      'argument-invalid',
      'options',
      `pass exactly one of targetBits, targetBytes and maxLoss, found ${keys.length}`,
    );
  const value = options[key];
  if (typeof value !== 'number' || !(value > 0 && Number.isFinite(value)))
    throw failure('argument-invalid', key, `${shown(value)} is not a positive number`);
  return { key, value };
}

interface Candidate {
  spec: QuantizationSpec;
  plan: Plan;
  tasks: Map<string, number>;
  work: Uint8Array;
}

/** Measures, then chooses. Errors: argument-invalid, those of forwardPlanOf and of plans, memory-budget. */
export async function findConfig(
  resources: RunResources,
  model: OpenedModel,
  source: OpenedModel | undefined,
  given: AutoConfigOptions,
  runSignal?: AbortSignal,
): Promise<AutoConfig> {
  const options = checkedWith(given, autoConfigOptions, runSignal);
  check(options.calibration, tokenCalibration, 'calibration');
  const { instance, memory } = resources;
  const { signal, exclude = ['lm_head'], format = 'compressed-tensors' } = options;
  const { includeTowers = false, includeExperts = false, excludeExperts = false } = options;
  const included = { includeTowers, includeExperts, excludeExperts };
  signal?.throwIfAborted();
  const budget = budgetOf(options);
  const batch = await forwardBatchOf(instance, model, options.calibration, { use: 'measure', source });
  planBlockTeam(memory, batch);
  const { tokens, plan: forward } = batch;

  const planned = (config: object) =>
    withPlan(instance, model, jsonText(config, 'candidates'), { format, ...included }, memory.tiles, tasksOf);
  const tasksOf = (bound: BoundPlan, plan: Plan) => {
    const { items, work } = plannedWork(instance, bound, plan);
    const [whole = new Uint8Array()] = work;
    return { plan, tasks: new Map(items.map(({ name }, number) => [name, number])), work: whole };
  };
  const base = { exclude: [...exclude], indivisible_groups: 'fallback', default_exclusions: true };
  const candidate = (spec: QuantizationSpec): Candidate => {
    return { spec, ...planned({ global_quant_config: { weight: spec }, ...base }) };
  };
  const candidates =
    options.candidates?.map((spec, i) => candidate(plainOf(spec, `candidates/${i}`) as QuantizationSpec)) ??
    fittingCandidates(candidate);
  if (candidates.length === 0)
    throw failure('argument-invalid', 'candidates', 'is empty; give the specs to choose from');

  const steps = forward.steps.slice(0, -1);
  const layers: AutoLayer[] = [];
  const fits = (candidate: Candidate, name: string) =>
    candidate.plan.tensors.find((tensor) => tensor.name === name && tensor.action === 'quantize');
  const blocks = steps.map(({ tensors }, step) =>
    (step === 0 ? [] : tensors).flatMap(({ slot, name }) => {
      const rows = candidates.map((candidate) => fits(candidate, name) ?? null);
      const found = rows.find((row) => row !== null);
      if (!found) return [];
      layers.push({
        name,
        elements: found.shape.reduce((product, extent) => product * extent, 1),
        choices: rows.map((row) => row && { bytes: row.bytesAfter, loss: 0 }),
        chosen: 0,
      });
      const tasks = candidates.flatMap(({ tasks }, i) => {
        const task = rows[i] ? tasks.get(name) : undefined;
        return task === undefined ? [] : [{ work: 1 + i, task }];
      });
      return [{ slot, tasks }];
    }),
  );
  if (layers.length === 0) {
    const detail =
      'leaves no linear layer of the transformer blocks to choose for: no candidate fits, or all layers are excluded';
    throw failure('argument-invalid', 'candidates', detail);
  }
  // Only blocks are measured; other layers keep their dtype.
  const measured = new Set(layers.map(({ name }) => name));
  const others = candidates.flatMap(({ plan }) =>
    plan.tensors.filter(({ name, action }) => action === 'quantize' && !measured.has(name)),
  );
  base.exclude.push(...new Set(others.map(({ layer }) => layer)));
  const work = [forward.work, ...candidates.map((each) => each.work)];
  const losses = await measure(resources, { models: [model], work }, options, {
    architecture: forward.architecture,
    steps: steps.map(({ name, tensors }) => ({ name, tensors })),
    reads: 0,
    blocks,
    tokens: tokens.ids,
    lengths: tokens.lengths,
  });
  const choices = layers.flatMap((layer) => layer.choices.filter((choice) => choice !== null));
  if (losses.length !== choices.length)
    throw new RangeError(`${losses.length} losses were measured, not ${choices.length}`);
  choices.forEach((choice, i) => {
    choice.loss = losses[i] as number;
  });
  const lost = layers.find((layer) => layer.choices.some((choice) => choice && !Number.isFinite(choice.loss)));
  if (lost)
    throw failure('value-not-finite', lost.name, 'has a candidate whose outputs are NaN or infinite; exclude it');
  return choose(budget, candidates, layers, base, (config) => planned(config).plan);
}

/** The autoCandidates that the format supports for every layer. Throws the last refusal if there are none. */
function fittingCandidates(candidate: (spec: QuantizationSpec) => Candidate): Candidate[] {
  const found: Candidate[] = [];
  let refusal: unknown = null;
  for (const spec of autoCandidates) {
    try {
      found.push(candidate(spec));
    } catch (error) {
      if (!(error instanceof QuantizationError)) throw error;
      refusal = error;
    }
  }
  if (found.length === 0) throw refusal;
  return found;
}

async function measure(
  resources: RunResources,
  runInputs: RunInputs,
  { signal, onProgress }: AutoConfigOptions,
  work: SensitivityWork,
): Promise<number[]> {
  const layers = work.blocks.reduce((sum, block) => sum + block.length, 0);
  const bytes = work.steps.reduce(
    (sum, { tensors }, i) =>
      sum + ((work.blocks[i] ?? []).length && tensors.reduce((all, { bytes }) => all + bytes, 0)),
    0,
  );
  const progress = new ProgressMeter(onProgress, layers, bytes);
  const part = { kind: 'sensitivity' as const, ...work };
  const losses = await runOne(
    resources,
    runInputs,
    { label: `sensitivity of ${layers} layers`, bytes, part },
    signal,
    (done) => progress.advance({ ...done, phase: 'calibrate' }),
  );
  progress.finish('calibrate');
  return losses;
}

/** Layers by the most common candidate, exceptions by name. */
function configOf(candidates: Candidate[], layers: AutoLayer[], base: object): Record<string, unknown> {
  const counts = candidates.map((_, i) => layers.filter(({ chosen }) => chosen === i).length);
  const most = counts.indexOf(Math.max(...counts));
  const others = layers.filter(({ chosen }) => chosen !== most);
  return {
    global_quant_config: { weight: candidates[most]?.spec },
    layer_quant_config: Object.fromEntries(
      others.map(({ name, chosen }) => [name.replace(/\.weight$/, ''), { weight: candidates[chosen]?.spec }]),
    ),
    ...base,
  };
}

function choose(
  budget: Budget,
  candidates: Candidate[],
  layers: AutoLayer[],
  base: object,
  planOf: (config: object) => Plan,
): AutoConfig {
  const elements = layers.reduce((sum, layer) => sum + layer.elements, 0);
  const own = (chosen: (layer: AutoLayer) => number) =>
    layers.reduce((sum, layer) => sum + (layer.choices[chosen(layer)]?.bytes ?? 0), 0);
  const chosenWithin = (limit: { bytes?: number; loss?: number }) => {
    const chosen = allocateBits(layers, limit);
    layers.forEach((layer, i) => {
      layer.chosen = chosen[i] ?? 0;
    });
    const config = configOf(candidates, layers, base);
    return { config, totals: planOf(config).totals };
  };
  // Bytes outside of these layers are constant, but for the lengths of headers.
  const { totals } = chosenWithin({ bytes: 0 });
  const cheapestBytes = own(({ chosen }) => chosen);
  const ofOthers = totals.bytesAfter - cheapestBytes;
  const limit =
    budget.key === 'maxLoss'
      ? { loss: budget.value }
      : { bytes: budget.key === 'targetBytes' ? budget.value - ofOthers : (budget.value * elements) / 8 };
  if (limit.bytes !== undefined && limit.bytes < cheapestBytes) {
    const least = budget.key === 'targetBytes' ? totals.bytesAfter : (cheapestBytes * 8) / elements;
    const detail = `${budget.value} is too little: the smallest candidates need ${least}`;
    throw failure('argument-invalid', budget.key, detail);
  }
  let found = chosenWithin(limit);
  while (budget.key === 'targetBytes' && limit.bytes !== undefined && found.totals.bytesAfter > budget.value) {
    limit.bytes = Math.max(cheapestBytes, limit.bytes - (found.totals.bytesAfter - budget.value));
    found = chosenWithin(limit);
  }
  const loss = layers.reduce((sum, layer) => sum + (layer.choices[layer.chosen]?.loss ?? 0), 0);
  if (limit.loss !== undefined && loss > limit.loss) {
    const detail = `${limit.loss} is out of reach: the best candidates have ${loss}`;
    throw failure('argument-invalid', 'maxLoss', detail);
  }
  return { ...found, candidates: candidates.map(({ spec }) => spec), layers, loss };
}
