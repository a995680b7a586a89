// Reuses tensors of an equal former task (the core decides): workers copy their bytes from its output.

import { failure } from '../api/errors.js';
import type { FormerRun, TensorError } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import type { TileSizes } from '../engine/memory.js';
import type { HeapBytes } from '../engine/module.js';
import type { FileSource } from '../io/source.js';
import { OpenedModel } from '../model/model.js';
import { type PlanChoices, type PreparedRun, prepareRun, withWork } from '../plan/plan.js';
import type { WorkItem } from '../pool/job_queue.js';
import type { Workshop } from '../pool/workshop.js';

export interface Reused {
  /** By task: copies of its components that replace it. */
  copies: Map<number, WorkItem[]>;
  /** Errors measured by the former run, by task. */
  errors: Map<number, TensorError | null>;
  /** Files of the former output; tasks number them after the model's. */
  sources: readonly FileSource[];
  /** Packed copies: the second entry of `ContextFiles.work`, after the plan's. */
  work: Uint8Array;
}

/** The core's answer; null for pairs with different outputs. */
interface Copies {
  copies: ({ bytes: number; tiles: number }[] | null)[];
  work: HeapBytes;
}

const notThis = (where: string, detail: string) =>
  failure('argument-invalid', 'reuse', `${where} ${detail}; give config and output of one run, or leave reuse out`);

/** The former output's files in plan order, after comparing their known bytes. Errors: argument-invalid. */
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

/** What replaces the first task of each pair, and all packed tasks. */
function copiesOf(instance: Instance, now: PreparedRun, then: PreparedRun, pairs: [number, number][], options: object) {
  return withWork(instance, now.work, (work) =>
    withWork(instance, then.work, (former) => {
      const found = instance.call<Copies>(() => work.copies(former, JSON.stringify(pairs), JSON.stringify(options)));
      return { copies: found.copies, work: instance.copyOut(found.work.pointer, found.work.bytes) };
    }),
  );
}

/** `config`: the former run's text. Errors: the plan's, argument-invalid. */
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
  const before = new Map(former.items.map(({ name }, number) => [name, number]));
  const measured = new Map(report.tensors.map(({ name, error }) => [name, error]));
  const pairs = run.items.flatMap(({ name, tensor }, number): [number, number][] => {
    const planned = run.plan.tensors[tensor];
    const known = before.get(name);
    return !planned || planned.action === 'copy' || known === undefined || !measured.has(name) ? [] : [[number, known]];
  });
  const options = { ...tiles, firstFile: model.weights.length };
  const { copies: found, work } = copiesOf(instance, run, former, pairs, options);
  const copies = new Map<number, WorkItem[]>();
  const errors = new Map<number, TensorError | null>();
  let copied = 0;
  for (const [place, [number]] of pairs.entries()) {
    const [item, pieces] = [run.items[number], found[place]];
    if (!item || !pieces) continue;
    const items = pieces.map((piece) => {
      const quantize = { work: 1, task: copied++ };
      return { ...item, ...piece, task: { quantize, observePasses: 0, observedInParts: false, joinedTiles: 0 } };
    });
    copies.set(number, items);
    errors.set(number, measured.get(item.name) ?? null);
  }
  return { copies, errors, sources, work };
}
