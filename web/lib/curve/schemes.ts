// The schemes of a curve: presets that a runtime reads, of weights only, so that a forward pass in float32 measures what they cost.

import { failure, QuantizationError } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { Config, CurveOptions, OutputFormat, Plan, RuntimeName } from '../api/types.js';
import { curveRuntimes, webRuntimes } from '../generated/runtimes.js';
import type { OpenedModel } from '../model/model.js';

/** A preset or a config in a format. */
export interface Scheme {
  scheme: string;
  config: Config;
  format: OutputFormat;
  plan: Plan;
}

export const runtimeNames: readonly RuntimeName[] = [...(Object.keys(curveRuntimes) as RuntimeName[]), 'web'];

interface Choice {
  format: OutputFormat;
  schemes: readonly string[];
}

/** Of several runtimes the first whose files are of that kind; models of another kind are written as safetensors. */
function choiceFor({ format }: OpenedModel, target: RuntimeName | undefined): Choice {
  if (target !== undefined && target !== 'web') return curveRuntimes[target];
  const named = target === 'web' ? webRuntimes : (Object.keys(curveRuntimes) as (keyof typeof curveRuntimes)[]);
  const choices = named.map((name) => curveRuntimes[name]);
  const isOf = (container: string) => (choice: Choice) => formats.outputs[choice.format].container === container;
  return choices.find(isOf(format)) ?? choices.find(isOf('safetensors')) ?? curveRuntimes[named[0]];
}

/** Whether two presets come to the same for a model, as where no group fits its rows. */
const isSame = (a: Plan, b: Plan) =>
  a.totals.bytesAfter === b.totals.bytesAfter &&
  a.tensors.every(({ action, spec }, i) => {
    const other = b.tensors[i];
    return action === other?.action && JSON.stringify(spec) === JSON.stringify(other.spec);
  });

/** The schemes that the model can have, by size, largest first. Errors: that of the first scheme if it can have none. */
export function schemesOf(
  model: OpenedModel,
  { schemes, configs = {}, target }: Pick<CurveOptions, 'schemes' | 'configs' | 'target'>,
  planOf: (config: Config, format: OutputFormat) => Plan,
): Scheme[] {
  const choice = choiceFor(model, target);
  const found: Scheme[] = [];
  let refusal: unknown = null;
  const all = new Map<string, Config>((schemes ?? choice.schemes).map((name) => [name, name]));
  for (const [scheme, config] of [...all, ...Object.entries(configs)]) {
    const isAsked = schemes !== undefined || scheme in configs;
    try {
      const plan = planOf(config, choice.format);
      const wrong = plan.diagnostics.find(({ severity }) => severity === 'error');
      if (wrong) throw failure('format-unsupported', wrong.where || scheme, wrong.message);
      const isNew = isAsked || !found.some((other) => isSame(other.plan, plan));
      if (isNew && (plan.totals.quantized > 0 || isAsked)) found.push({ scheme, config, format: plan.format, plan });
    } catch (error) {
      if (!(error instanceof QuantizationError)) throw error;
      if (isAsked && error.code === 'config-invalid') throw error;
      refusal ??= error;
    }
  }
  const { title } = formats.outputs[choice.format];
  if (found.length === 0)
    throw (
      refusal ?? failure('argument-invalid', 'schemes', `none of them quantizes a weight of this model as ${title}`)
    );
  return found.sort((a, b) => b.plan.totals.bytesAfter - a.plan.totals.bytesAfter);
}
