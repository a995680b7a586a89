// The chosen runtime, scheme or custom config, and format. The plan follows them.
import { computed, effect, signal } from '@preact/signals';
import type { Model, OutputFormat, Plan, PlanOptions, QuantConfig } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { configOf } from '../../present/config_edits';
import { quantizer } from '../app/engine';
import { explain, type Failure } from '../app/failure';
import { feeds } from '../feeds/feeds';
import { opened } from '../open/opened';
import { planOf } from './planner';
import type { RuntimeId } from './runtimes';

export type CardName = 'safe' | 'balanced' | 'smallest';

export interface Choice {
  runtime: RuntimeId;
  /** The card, whose scheme may change while schemes are measured; null: the scheme was chosen itself. */
  card: CardName | null;
  /** Name of a preset. */
  preset: string;
  format: OutputFormat;
  /** JSON text that replaces the preset's config; null = the preset unchanged. */
  configText: string | null;
}

export const choice = signal<Choice>({
  runtime: 'transformers',
  card: 'balanced',
  preset: '',
  format: 'compressed-tensors',
  configText: null,
});

export const presets = computed(() => quantizer.value?.presets() ?? []);
export const chosenPreset = computed(() => presets.value.find((preset) => preset.name === choice.value.preset) ?? null);

/** Whether two choices make the same files. */
export function isSameChoice(left: Choice, right: Choice): boolean {
  return left.preset === right.preset && left.format === right.format && left.configText === right.configText;
}

/** The config in effect; null while its text is not a JSON object. */
export const chosenConfig = computed<Record<string, unknown> | null>(() => {
  const { configText, format } = choice.value;
  if (configText === null)
    return chosenPreset.value && configOf(chosenPreset.value, formats.outputs[format].takesRecipes);
  try {
    const config: unknown = JSON.parse(configText);
    return typeof config === 'object' && config !== null && !Array.isArray(config)
      ? (config as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
});

/** Null if the config has errors. */
function parsed(config: object): QuantConfig | null {
  try {
    return quantizer.value?.parseConfig(config) ?? null;
  } catch {
    return null;
  }
}

/** The dialect of a config; '' if it has errors. */
export const dialectOf = (config: object): string => parsed(config)?.dialect ?? '';

/** Whether a run of this config needs a text to calibrate with. */
export const needsText = (config: object): boolean => parsed(config)?.needsTokens ?? false;

/** Replaces the current config with a custom one. */
export function useConfig(config: object): void {
  choice.value = { ...choice.value, card: null, configText: JSON.stringify(config, null, 2) };
}

/** The newest plan that a worker was asked for, once it is there. */
const arrived = signal(0);

/** Null while a worker makes it. */
function planNow(model: Model, config: string | object, options: PlanOptions): Plan | null {
  arrived.value;
  const plan = planOf(model, config, options);
  if (!(plan instanceof Promise)) return plan;
  const again = () => {
    arrived.value += 1;
  };
  plan.then(again, again);
  return null;
}

/** Without a plan and a failure: nothing to plan yet, or a worker is at it. */
export type Planned = { plan: Plan; failure: null } | { plan: null; failure: Failure | null };

/** Follows the model and the choice; reads headers, never weights. */
export const planned = computed<Planned>(() => {
  if (!quantizer.value || !opened.value || !choice.value.preset) return { plan: null, failure: null };
  try {
    const { preset, configText, format } = choice.value;
    const { model } = opened.value;
    const calibrated = feeds() !== null;
    const plan = planNow(model, configText ?? preset, calibrated ? { format, calibrated } : { format });
    return { plan, failure: null };
  } catch (error) {
    return { plan: null, failure: explain(error, 'This config cannot be used') };
  }
});

/** What `planned` has once no worker is at it. */
export function whenPlanned(): Promise<Planned> {
  return new Promise((resolve) => {
    const end = effect(() => {
      const now = planned.value;
      if (!now.plan && !now.failure && opened.value && choice.value.preset) return;
      resolve(now);
      queueMicrotask(() => end());
    });
  });
}

let last: { model: unknown; plan: Plan } | null = null;
/** The plan, or the last one of this model while the config has errors: what it says of tensors still holds. */
export const shownPlan = computed<Plan | null>(() => {
  const model = opened.value?.model;
  const { plan } = planned.value;
  if (plan) last = { model, plan };
  return last?.model === model ? (last?.plan ?? null) : null;
});
