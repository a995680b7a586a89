// Plans as JSON and back. Shared values are written once and referenced by number; in a plan they are one object.

import { check, reading } from './arguments.js';
import { failure } from './errors.js';
import type { TensorInfo } from './model_types.js';
import type {
  OutputTensor,
  Plan,
  PlanJson,
  PlannedOutputJson,
  PlannedTensor,
  PlannedTensorJson,
  Reason,
} from './plan_types.js';
import type { QuantizationSpec } from './tensor_types.js';

/** Rows of tensors, and the shared values they use first. */
export type PlanRows = Pick<PlanJson, 'tensors' | 'specs' | 'reasons' | 'outputs'>;

/** A row of a plan. `error` instead of `outputs`: of a run, which needs no names of outputs, and makes the row its report's. */
export type PlanRow = Omit<PlannedTensor, 'outputs'> & { outputs?: OutputTensor[]; error?: null };

/** The layer of a tensor with this name; `slice` shares its characters. */
export const usualLayer = (name: string) =>
  name.slice(0, name.length - (/\.(weight|bias)$/.exec(name)?.[0].length ?? 0));

function numbered<T>(list: readonly T[], number: number, what: string): T {
  const found = list[number];
  if (found === undefined)
    throw failure('argument-invalid', 'tensors', `one names ${what} ${number}, of which there are ${list.length}`);
  return found;
}

/** One object for equal values, of which a large model has few. */
export class SharedValues<T> {
  readonly #known = new Map<string, T>();

  /** The first value that was equal, as JSON. */
  shared(value: T): T {
    const key = JSON.stringify(value);
    const known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, value);
    return known ?? value;
  }
}

/** What a caller knows of the rows, and does not need of them. */
export interface RowUse {
  /** The model's tensors: rows share their names. */
  model?: readonly Pick<TensorInfo, 'name' | 'layer'>[];
  /** Leaves `outputs` out. */
  withoutOutputs?: boolean;
}

/** Reads rows in order. */
export class PlanReader {
  readonly tensors: PlanRow[] = [];
  readonly #use: RowUse;
  readonly #shapes = new SharedValues<number[]>();
  readonly #files: readonly string[];
  readonly #specs: QuantizationSpec[] = [];
  readonly #reasons: Reason[] = [];
  readonly #outputs: PlannedOutputJson[] = [];

  constructor(files: Plan['files'], use: RowUse = {}) {
    this.#files = files.map(({ name }) => name);
    this.#use = use;
  }

  /** Errors: argument-invalid for a number outside its list. */
  add({ tensors, specs, reasons, outputs }: PlanRows): void {
    for (const spec of specs) this.#specs.push(spec);
    for (const reason of reasons) this.#reasons.push(reason);
    for (const output of outputs) this.#outputs.push(output);
    for (const row of tensors) this.tensors.push(this.#tensor(row));
  }

  #tensor(row: PlannedTensorJson): PlanRow {
    const { layerType, dtype, shape, action, spec, stages, reason } = row;
    const known = this.#use.model?.[this.tensors.length];
    const isKnown = known?.name === row.name;
    const name = isKnown ? known.name : row.name;
    const own = row.layer ?? usualLayer(name);
    const layer = isKnown && own === known.layer ? known.layer : own;
    const { bytesBefore, bytesAfter, outputs } = row;
    const specOf = (number: number) => numbered(this.#specs, number, 'spec');
    return {
      name,
      layer,
      layerType,
      dtype,
      shape: this.#shapes.shared(shape),
      action,
      spec: spec === null ? null : specOf(spec),
      ...(stages && { stages: stages.map(specOf) }),
      reason: numbered(this.#reasons, reason, 'reason'),
      bytesBefore,
      bytesAfter,
      ...(this.#use.withoutOutputs
        ? { error: null }
        : { outputs: outputs.map((output) => this.#output(layer, output)) }),
    };
  }

  #output(layer: string, output: number | PlannedOutputJson): OutputTensor {
    const known = typeof output === 'number' ? numbered(this.#outputs, output, 'output') : output;
    const { suffix = '', name = layer + suffix, dtype, shape, bytes, file } = known;
    return { name, dtype, shape, bytes, file: numbered(this.#files, file, 'file') };
  }
}

/** A plan from its JSON. @throws QuantizationError argument-invalid if a tensor refers to a missing entry */
export const planOf = (plan: PlanJson): Plan => reading('plan', () => planFrom(plan));

function planFrom(plan: PlanJson): Plan {
  check(plan, 'object', 'plan');
  const { specs, reasons, outputs, tensors, ...rest } = plan;
  for (const [key, list] of Object.entries({ specs, reasons, outputs, tensors, files: rest.files }))
    check(list, 'list', key);
  const reader = new PlanReader(rest.files);
  reader.add({ specs, reasons, outputs, tensors });
  return { ...rest, tensors: reader.tensors as PlannedTensor[] };
}

/** Values in order of first use; `key` identifies them. */
class Table<T> {
  readonly values: T[] = [];
  readonly #numbers = new Map<unknown, number>();

  numberOf(value: T, key: unknown = value): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.values.length);
    return this.values.push(value) - 1;
  }
}

/** The compact JSON of a plan: under 300 bytes per tensor. @throws QuantizationError argument-invalid if an output's file is not in the plan */
export const planJson = (plan: Plan): PlanJson => reading('plan', () => jsonOf(plan));

function jsonOf(plan: Plan): PlanJson {
  check(plan, 'object', 'plan');
  const { tensors, ...rest } = plan;
  for (const [key, list] of Object.entries({ tensors, files: rest.files })) check(list, 'list', key);
  const [specs, reasons] = [new Table<QuantizationSpec>(), new Table<Reason>()];
  const outputs = new Table<PlannedOutputJson>();
  const files = new Map(rest.files.map(({ name }, number) => [name, number]));
  const outputOf = (layer: string, { name, file, ...output }: OutputTensor) => {
    const number = files.get(file);
    if (number === undefined) throw failure('argument-invalid', file, `has ${name}, and is not a file of the plan`);
    const stored = { ...output, file: number };
    if (!name.startsWith(layer)) return { name, ...stored };
    const known = { suffix: name.slice(layer.length), ...stored };
    return outputs.numberOf(known, JSON.stringify(known));
  };
  const rows = tensors.map((tensor): PlannedTensorJson => {
    const { name, layer, layerType, dtype, shape, action, spec, stages, reason, bytesBefore, bytesAfter } = tensor;
    return {
      name,
      ...(layer !== usualLayer(name) && { layer }),
      layerType,
      dtype,
      shape,
      action,
      spec: spec && specs.numberOf(spec),
      ...(stages && { stages: stages.map((stage) => specs.numberOf(stage)) }),
      reason: reasons.numberOf(reason),
      bytesBefore,
      bytesAfter,
      outputs: tensor.outputs.map((output) => outputOf(layer, output)),
    };
  });
  return { ...rest, specs: specs.values, reasons: reasons.values, outputs: outputs.values, tensors: rows };
}
