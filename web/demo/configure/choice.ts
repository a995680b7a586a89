// The chosen preset or custom config, and the format. The plan follows both.
import { computed, signal } from '@preact/signals';
import { formats, type OutputFormat, type Plan, type QuantConfig } from 'wasmquant';
import { configOf } from '../../present/config_edits';
import { quantizer } from '../app/engine';
import { explain, type Failure } from '../app/failure';
import { feeds } from '../feeds/feeds';
import { opened } from '../open/opened';

export interface Choice {
  /** Name of a preset. */
  preset: string;
  format: OutputFormat;
  /** JSON text that replaces the preset's config; null = the preset unchanged. */
  configText: string | null;
}

export const choice = signal<Choice>({ preset: '', format: 'compressed-tensors', configText: null });

export const presets = computed(() => quantizer.value?.presets() ?? []);
export const chosenPreset = computed(() => presets.value.find((preset) => preset.name === choice.value.preset) ?? null);

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
  choice.value = { ...choice.value, configText: JSON.stringify(config, null, 2) };
}

export type Planned = { plan: Plan; failure: null } | { plan: null; failure: Failure | null };

/** Follows the model and the choice; reads headers, never weights. */
export const planned = computed<Planned>(() => {
  if (!quantizer.value || !opened.value || !choice.value.preset) return { plan: null, failure: null };
  try {
    const { preset, configText, format } = choice.value;
    const plan = quantizer.value.plan(opened.value.model, configText ?? preset, {
      format,
      calibrated: feeds() !== null,
    });
    return { plan, failure: null };
  } catch (error) {
    return { plan: null, failure: explain(error, 'This config cannot be used') };
  }
});
