// Where a result will run. The runtime decides the format, and with it the schemes.
import type { Model, OutputFormat } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { type PlaceId, placeIds, placeRuntimes, places, placeTitle } from '../../present/runtimes/table';

export type RuntimeId = PlaceId;

export interface Runtime {
  id: RuntimeId;
  title: string;
  /** Formats that it reads, the usual one first. */
  formats(model: Model | undefined): readonly OutputFormat[];
  /** The small text next to the title. */
  note(model: Model | undefined): string;
}

const hasGraph = (model: Model | undefined) => model !== undefined && formats.inputs[model.format].hasGraph;
const isGraph = (name: OutputFormat) => formats.inputs[formats.outputs[name].container].hasGraph;

/** Of a place for graphs and for weights, the formats that fit the model. */
function formatsAt(id: PlaceId, model: Model | undefined): readonly OutputFormat[] {
  const read: readonly OutputFormat[] = places[id].formats;
  const fitting = read.filter((name) => isGraph(name) === hasGraph(model));
  return fitting.length > 0 ? fitting : read;
}

function noteAt(id: PlaceId, model: Model | undefined): string {
  const read = formatsAt(id, model);
  if (places[id].runtimes.length === 0) return 'same size';
  const titles = read.map((name) => formats.outputs[name].title).join(', ');
  const [first] = read;
  return places[id].title && first ? `${titles}: ${placeRuntimes(id, first)}` : titles;
}

export const runtimes: readonly Runtime[] = placeIds.map((id) => ({
  id,
  title: placeTitle(id),
  formats: (model) => formatsAt(id, model),
  note: (model) => noteAt(id, model),
}));

export const runtimeOf = (id: RuntimeId): Runtime =>
  runtimes.find((runtime) => runtime.id === id) ?? (runtimes[0] as Runtime);

/** The first place whose usual format it is. */
export const placeFor = (format: OutputFormat): RuntimeId =>
  placeIds.find((id) => places[id].formats[0] === format) ?? 'cost';

/** A runtime that cannot be reached from a model: why, and what would help. */
export interface Obstacle {
  reason: string;
  help: string;
}

/** By the kinds of files; a plan may still refuse. */
export function obstacleOf(runtime: Runtime, model: Model): Obstacle | null {
  const read = runtime.formats(model);
  if (read.some((name) => formats.outputs[name].sources.includes(model.format))) return null;
  if (hasGraph(model))
    return {
      reason: 'needs safetensors',
      help: 'An ONNX file stays ONNX. Open the safetensors files that it was exported from.',
    };
  return {
    reason: 'needs the original',
    help: `A ${formats.inputs[model.format].title} file stays one. Open the safetensors folder that it was made from.`,
  };
}

/** The runtime that a model is most often meant for. `reaches`: whether a plan for it succeeds. */
export function usualRuntime(model: Model, shards: number, reaches: (id: RuntimeId) => boolean): RuntimeId {
  if (hasGraph(model)) return placeFor('onnx');
  if (model.format === 'gguf') return placeFor('gguf');
  // One file is for one machine; shards are for servers.
  const local = placeFor('gguf');
  return shards < 2 && model.config !== null && reaches(local) ? local : placeFor('compressed-tensors');
}
