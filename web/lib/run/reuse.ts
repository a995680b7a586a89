// Tensors that a former run of the same model made the same: their bytes are copied from its output, range by range, by
// the workers that do the rest. Two tensors are made the same when the core's tasks for them differ in nothing but where
// the bytes go.

import { failure } from '../api/errors.js';
import type { FormerRun, TensorError } from '../api/types.js';
import type { TileSizes } from '../engine/memory.js';
import type { FileSource } from '../io/source.js';
import { OpenedModel } from '../model/model.js';
import { type PlanChoices, type PreparedRun, prepareRun } from '../plan/plan.js';
import type { WorkItem } from '../pool/job_queue.js';
import type { Workshop } from '../pool/workshop.js';

export interface Reused {
  /** What stands in for a task, by its number: copies of its components. */
  copies: Map<number, WorkItem[]>;
  /** Errors of these tensors, as the former run measured them, by task number. */
  errors: Map<number, TensorError | null>;
  /** Files of the former output; tasks number them after the model's. */
  sources: readonly FileSource[];
}

interface TaskJson {
  components: [file: number, offset: number][];
  padding?: number;
}

function taskOf({ task }: WorkItem): { same: string; json: TaskJson } | null {
  if (!('quantize' in task)) return null;
  const json = JSON.parse(task.quantize) as TaskJson;
  return { same: JSON.stringify({ ...json, components: json.components.length }), json };
}

const notThis = (where: string, detail: string) =>
  failure('argument-invalid', 'reuse', `${where} ${detail}; give config and output of one run, or leave reuse out`);

/** The former output's files in the order of its plan, their known bytes compared. Errors: argument-invalid. */
async function filesOf({ files }: PreparedRun, output: OpenedModel): Promise<FileSource[]> {
  const found: FileSource[] = [];
  for (const { name, bytes, literals } of files) {
    const source = files.length === 1 ? output.weights[0] : output.weights.find((file) => file.name === name);
    if (!source || output.weights.length !== files.length) throw notThis(name, 'is not in the output');
    if (source.size !== bytes) throw notThis(source.name, `has ${source.size} bytes, the config makes ${bytes}`);
    for (const { offset, bytes: known } of literals) {
      const stored = await source.read(offset, known.byteLength);
      if (known.some((byte, i) => byte !== stored[i])) throw notThis(source.name, 'has another header');
    }
    found.push(source);
  }
  return found;
}

/** Whether what stands there follows from the plan, such as the shape of a packed weight. */
function isKnown({ files }: PreparedRun, [file, at]: [file: number, offset: number]): boolean {
  const literals = files[file]?.literals ?? [];
  return literals.some(({ offset, bytes }) => at >= offset && at < offset + bytes.byteLength);
}

/** `config`: text of the former run's. Errors: those of the plan, argument-invalid. */
export async function reuseTensors(
  { instance }: Workshop,
  model: OpenedModel,
  run: PreparedRun,
  { output, report }: FormerRun,
  config: string,
  choices: PlanChoices,
  tiles: TileSizes,
): Promise<Reused> {
  if (!(output instanceof OpenedModel)) throw notThis('output', 'was not made by open() of this library');
  const former = await prepareRun(instance, model, config, choices, tiles);
  const sources = await filesOf(former, output);
  const before = new Map(former.items.map((item) => [item.name, item]));
  const measured = new Map(report.tensors.map(({ name, error }) => [name, error]));
  const copies = new Map<number, WorkItem[]>();
  const errors = new Map<number, TensorError | null>();
  for (const [number, item] of run.items.entries()) {
    const planned = run.plan.tensors[run.tasks[number]?.tensor ?? -1];
    const known = before.get(item.name);
    const error = measured.get(item.name);
    if (!planned || planned.action === 'copy' || !known || error === undefined) continue;
    const [now, then] = [taskOf(item), taskOf(known)];
    if (!now || !then || now.same !== then.same) continue;
    const items = now.json.components.flatMap((to, component): (WorkItem | null)[] => {
      if (isKnown(run, to)) return [];
      const from = then.json.components[component];
      const bytes = planned.outputs[component]?.bytes;
      if (!from || bytes === undefined) return [null];
      const padding = now.json.padding ?? 0;
      const source = [model.weights.length + from[0], from[1]];
      const task = { name: item.name, source, bytes, components: [to], padding, tile_lines: tiles.tileBytes };
      const count = Math.ceil(bytes / tiles.tileBytes);
      const quantize = JSON.stringify({ ...task, tiles: count });
      const work = { quantize, observePasses: 0, observedInParts: false };
      return [{ name: item.name, bytes, tiles: count, task: work, merge: item.merge }];
    });
    if (items.some((copy) => copy === null)) continue;
    copies.set(
      number,
      items.filter((copy) => copy !== null),
    );
    errors.set(number, error);
  }
  return { copies, errors, sources };
}
