// Finds a config for a byte budget: measures every linear layer of the transformer blocks with every candidate (of GGUF files also the
// tables of tokens), then replaces the cheapest candidates by better ones, best gain per byte first.

import { check, checkedWith, jsonText, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
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
import { autoCandidates, type Candidate, configOf, fittingCandidates } from './auto_candidates.js';
import { allocateBits } from './bit_budget.js';
import { DivergenceProbes } from './divergence_probes.js';
import { fittedMixture, type MixedLayer, mixtureOf, mixtureTypes, scaleLosses, typeEverywhere } from './mixture.js';

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
  const { signal, format = 'compressed-tensors' } = options;
  const isMixture = format === 'gguf';
  const { exclude = isMixture ? [] : ['lm_head'] } = options;
  const { includeTowers = false, experts } = options;
  const included = { includeTowers, ...(experts && { experts }) };
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
    const everywhere = isMixture
      ? typeEverywhere(spec.dtype, exclude)
      : { global_quant_config: { weight: spec }, ...base };
    return { spec, ...planned(everywhere) };
  };
  const candidates =
    options.candidates?.map((spec, i) => candidate(plainOf(spec, `candidates/${i}`) as QuantizationSpec)) ??
    fittingCandidates(isMixture ? mixtureTypes.map((dtype) => ({ dtype })) : autoCandidates, candidate);
  if (candidates.length === 0)
    throw failure('argument-invalid', 'candidates', 'is empty; give the specs to choose from');

  const steps = forward.steps.slice(0, -1);
  const layers: AutoLayer[] = [];
  // A type that rows do not have room for becomes another one, which is a candidate, too.
  const isOther = (spec: QuantizationSpec, [output]: Plan['tensors'][number]['outputs']) =>
    isMixture && output?.dtype.toLowerCase() !== spec.dtype;
  const fits = ({ spec, plan }: Candidate, name: string) =>
    plan.tensors.find((row) => row.name === name && row.action === 'quantize' && !isOther(spec, row.outputs));
  const mixed: MixedLayer[] = [];
  const layerOf = (name: string, step: number, slot: number, block: number | null) => {
    const rows = candidates.map((candidate) => fits(candidate, name) ?? null);
    const found = rows.find((row) => row !== null);
    if (!found) return [];
    const layer = {
      name,
      elements: found.shape.reduce((product, extent) => product * extent, 1),
      choices: rows.map((row) => row && { bytes: row.bytesAfter, loss: 0 }),
      chosen: rows.indexOf(found),
    };
    layers.push(layer);
    const tasks = candidates.map(({ tasks }, i) => {
      const task = rows[i] ? tasks.get(name) : undefined;
      return task === undefined ? null : { work: 1 + i, task };
    });
    mixed.push({ layer, places: [{ step, slot }], tasks, block });
    return [{ slot, tasks: tasks.filter((task) => task !== null) }];
  };
  const blocks = steps.map(({ tensors }, step) =>
    (step === 0 ? [] : tensors).flatMap(({ slot, name }) => layerOf(name, step, slot, step)),
  );
  if (layers.length === 0) {
    const detail =
      'leaves no linear layer of the transformer blocks to choose for: no candidate fits, or all layers are excluded';
    throw failure('argument-invalid', 'candidates', detail);
  }
  const inBlocks = [...layers];
  for (const step of isMixture ? [0, forward.steps.length - 1] : [])
    for (const { slot, name } of forward.steps[step]?.tensors ?? []) {
      const same = mixed.find(({ layer, block }) => block === null && layer.name === name);
      if (same) same.places = [...same.places, { step, slot }];
      else layerOf(name, step, slot, null);
    }
  // Layers that are not measured keep their dtype.
  const measured = new Set(layers.map(({ name }) => name));
  const others = candidates.flatMap(({ plan }) =>
    plan.tensors.filter(({ name, action }) => action === 'quantize' && !measured.has(name)),
  );
  base.exclude.push(...new Set(others.map(({ layer }) => layer)));
  const work = [forward.work, ...candidates.map((each) => each.work)];
  const runInputs = { models: [model], work };
  const losses = await measure(resources, runInputs, options, {
    architecture: forward.architecture,
    steps,
    reads: 0,
    blocks,
    tokens: tokens.ids,
    lengths: tokens.lengths,
  });
  const choices = inBlocks.flatMap((layer) => layer.choices.filter((choice) => choice !== null));
  if (losses.length !== choices.length)
    throw new RangeError(`${losses.length} losses were measured, not ${choices.length}`);
  choices.forEach((choice, i) => {
    choice.loss = losses[i] as number;
  });
  const lost = layers.find((layer) => layer.choices.some((choice) => choice && !Number.isFinite(choice.loss)));
  if (lost)
    throw failure('value-not-finite', lost.name, 'has a candidate whose outputs are NaN or infinite; exclude it');
  const chosenFor = (limit: Budget) =>
    choose(
      limit,
      candidates,
      layers,
      (config) => planned(config).plan,
      () =>
        isMixture
          ? mixtureOf(
              candidates.map(({ spec }) => spec.dtype),
              layers,
              base.exclude,
            )
          : configOf(candidates, layers, base),
    );
  if (!isMixture) return chosenFor(budget);
  const probes = new DivergenceProbes(resources, runInputs, batch, options);
  await scaleLosses(probes, mixed);
  return fittedMixture(budget.key === 'maxLoss' ? budget.value : null, mixed, probes, (value) =>
    chosenFor(value === null ? budget : { key: 'maxLoss', value }),
  );
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

function choose(
  budget: Budget,
  candidates: Candidate[],
  layers: AutoLayer[],
  planOf: (config: object) => Plan,
  ofChosen: () => Record<string, unknown>,
): AutoConfig {
  const elements = layers.reduce((sum, layer) => sum + layer.elements, 0);
  const own = (chosen: (layer: AutoLayer) => number) =>
    layers.reduce((sum, layer) => sum + (layer.choices[chosen(layer)]?.bytes ?? 0), 0);
  const chosenWithin = (limit: { bytes?: number; loss?: number }) => {
    const chosen = allocateBits(layers, limit);
    layers.forEach((layer, i) => {
      layer.chosen = chosen[i] ?? 0;
    });
    const config = ofChosen();
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
