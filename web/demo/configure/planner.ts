// Plans of open models: at once if a model has few tensors, from a worker if it has many, so that no task of the main thread gets
// long.
import type { HubOptions, Model, Plan, PlanOptions, Source } from 'wasmquant';
import { planNow } from 'wasmquant/internal';
import { quantizer } from '../app/engine';
import { LargeModel } from '../large/large-model';

/** Up to here a plan takes less time than asking a worker for it does. */
const fewTensors = 300;

/** As many plans of a model are kept; each has a row for each tensor. */
const mostKept = 3;

type Outcome = { plan: Plan } | { error: unknown };

interface Planning {
  /** Null: the model has few tensors. */
  large: LargeModel | null;
  /** Outcomes by request, the newest last; promises of those that the worker has not answered. */
  known: Map<string, Outcome | Promise<Plan>>;
}

const plannings = new WeakMap<Model, Planning>();

/** Before the first plan: where a worker finds the model. */
export function plansFrom(model: Model, source: Source | Source[] | URL, hub: HubOptions): void {
  const found = source instanceof URL ? source.href : source;
  const large = model.tensors.length > fewTensors ? new LargeModel(found, hub) : null;
  plannings.set(model, { large, known: new Map() });
}

/** Of a model that is closed. */
export function endPlans(model: Model): void {
  plannings.get(model)?.large?.end();
  plannings.delete(model);
}

/** The worker that has the model; null: it has few tensors, and the main thread does what is to be done. */
export const largeModel = (model: Model): LargeModel | null => plannings.get(model)?.large ?? null;

function outcomeOf(make: () => Plan): Outcome {
  try {
    return { plan: make() };
  } catch (error) {
    return { error };
  }
}

function keep({ known }: Planning, key: string, outcome: Outcome | Promise<Plan>): void {
  known.set(key, outcome);
  const settled = [...known].filter(([, each]) => !(each instanceof Promise));
  for (const [old] of settled.slice(0, Math.max(0, settled.length - mostKept))) known.delete(old);
}

function request(of: Planning, model: Model, key: string, config: string | object, options: PlanOptions) {
  if (!of.large) return outcomeOf(() => planNow(quantizer.value!, model, config, options));
  const promise = of.large.ask('plan', { config, options });
  const settle = (outcome: Outcome) => {
    of.known.delete(key); // behind those that were asked for later
    keep(of, key, outcome);
  };
  promise.then(
    (plan) => settle({ plan }),
    (error: unknown) => settle({ error }),
  );
  return promise;
}

/** The plan, or a promise of it. Errors: those of the library's plans, thrown or as a rejection. */
export function planOf(model: Model, config: string | object, options: PlanOptions): Plan | Promise<Plan> {
  const of = plannings.get(model);
  if (!of) throw new Error('The model is closed.');
  const key = JSON.stringify([config, options]);
  let outcome = of.known.get(key);
  if (!outcome) {
    outcome = request(of, model, key, config, options);
    keep(of, key, outcome);
  }
  if (outcome instanceof Promise) return outcome;
  if ('error' in outcome) throw outcome.error;
  return outcome.plan;
}

/** A plan whose rows may be missing: a list of sizes needs none of them, and a large model has thousands. */
export function sizedPlan(
  model: Model,
  config: string | object,
  options: PlanOptions,
): Omit<Plan, 'tensors'> | Promise<Omit<Plan, 'tensors'>> {
  const of = plannings.get(model);
  const isKnown = of?.known.has(JSON.stringify([config, options]));
  return !of?.large || isKnown ? planOf(model, config, options) : of.large.ask('size', { config, options });
}
