// Plans of open models: at once if a model has few tensors, from a worker if it has many, so that no task of the main thread gets
// long.
import {
  type Curve,
  type HubOptions,
  type Model,
  type Plan,
  type PlanOptions,
  QuantizationError,
  type Source,
} from 'wasmquant';
import { quantizer } from '../app/engine';
import type { LargeCurveOptions, PlanReply, PlanRequest } from './plan-worker';

/** Up to here a plan takes less time than asking a worker for it does. */
const fewTensors = 300;

/** As many plans of a model are kept; each has a row for each tensor. */
const mostKept = 3;

type Outcome = { plan: Plan } | { error: unknown };

interface Planning {
  source: Source | Source[];
  hub: HubOptions;
  worker: Promise<Worker> | null;
  waiting: Map<number, (reply: PlanReply) => void>;
  /** Outcomes by request, the newest last; promises of those that the worker has not answered. */
  known: Map<string, Outcome | Promise<Plan>>;
}

const plannings = new WeakMap<Model, Planning>();
let requests = 0;

/** Before the first plan: where a worker finds the model. */
export function plansFrom(model: Model, source: Source | Source[] | URL, hub: HubOptions): void {
  const found = source instanceof URL ? source.href : source;
  plannings.set(model, { source: found, hub, worker: null, waiting: new Map(), known: new Map() });
}

/** Of a model that is closed. */
export function endPlans(model: Model): void {
  const of = plannings.get(model);
  void of?.worker?.then((worker) => worker.terminate());
  if (of) failAll(of, 'The model was closed.');
  plannings.delete(model);
}

function failAll({ waiting }: Planning, error: string): void {
  for (const [id, reply] of waiting) reply({ id, error });
  waiting.clear();
}

async function start(of: Planning): Promise<Worker> {
  const { scriptUrl } = await import('./plan-worker');
  const worker = new Worker(scriptUrl, { type: 'module' });
  worker.onmessage = ({ data }: MessageEvent<PlanReply>) => {
    of.waiting.get(data.id)?.(data);
    if (!data.rows && !data.soFar) of.waiting.delete(data.id);
  };
  worker.onerror = (event) => {
    of.worker = null;
    failAll(of, event.message || 'The worker that plans could not be loaded.');
  };
  worker.postMessage({ type: 'open', source: of.source, hub: of.hub } satisfies PlanRequest);
  return worker;
}

const errorOf = (error: PlanReply['error']) =>
  typeof error === 'object' ? new QuantizationError(error) : new Error(error);

async function ask(of: Planning, config: string | object, options: PlanOptions, isSize: boolean): Promise<Plan> {
  of.worker ??= start(of);
  const worker = await of.worker;
  const id = ++requests;
  return new Promise((resolve, reject) => {
    const tensors: Plan['tensors'] = [];
    of.waiting.set(id, ({ rows, rest, error }) => {
      if (rows) tensors.push(...rows);
      else if (rest) resolve({ ...rest, tensors });
      else reject(errorOf(error));
    });
    worker.postMessage({ type: 'plan', id, config, options, isSize } satisfies PlanRequest);
  });
}

/** Size against loss, measured by the worker. Errors: those of the library's curves; the signal's reason. */
export async function largeCurve(
  model: Model,
  options: LargeCurveOptions,
  signal: AbortSignal,
  onPoint: (soFar: Curve) => void,
): Promise<Curve> {
  const of = plannings.get(model);
  if (!of) throw new Error('The model is closed.');
  of.worker ??= start(of);
  const worker = await of.worker;
  signal.throwIfAborted();
  const id = ++requests;
  const stop = () => worker.postMessage({ type: 'stop', id } satisfies PlanRequest);
  signal.addEventListener('abort', stop);
  try {
    return await new Promise((resolve, reject) => {
      of.waiting.set(id, ({ soFar, curve, error }) => {
        if (soFar) onPoint(soFar);
        else if (curve) resolve(curve);
        else reject(errorOf(error));
      });
      worker.postMessage({ type: 'curve', id, options } satisfies PlanRequest);
    });
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

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
  if (model.tensors.length <= fewTensors) return outcomeOf(() => quantizer.value!.plan(model, config, options));
  const promise = ask(of, config, options, false);
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
  return !of || isKnown || model.tensors.length <= fewTensors
    ? planOf(model, config, options)
    : ask(of, config, options, true);
}
