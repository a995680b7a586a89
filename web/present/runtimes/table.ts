// The runtimes of the core's table, as lists and texts.
import type { OutputFormat, RuntimeName } from 'wasmquant';
import { places, runtimes } from '../generated/runtimes.js';

export { places, runtimes };

type RuntimeId = keyof typeof runtimes;
/** A choice of the page. */
export type PlaceId = keyof typeof places;

export const placeIds = Object.keys(places) as PlaceId[];

const rows = Object.entries(runtimes) as [
  RuntimeId,
  { title: string; formats: readonly string[]; presets: readonly string[] },
][];

/** Runtimes for which a curve has schemes. */
export const curveRuntimes = [
  ...rows.flatMap(([id, { presets }]) => (presets.length > 0 ? [id] : [])),
  'web',
] as RuntimeName[];

/** Presets that some runtime of the table is offered, which people choose from first; the others are for one tool or one need. */
export const usualPresets: ReadonlySet<string> = new Set(rows.flatMap(([, { presets }]) => presets));

/** The first runtime whose usual format it is and for which a curve has schemes; undefined if there is none. */
export const curveRuntimeOf = (format: OutputFormat) =>
  rows.find(([id, { formats }]) => formats[0] === format && curveRuntimes.includes(id as RuntimeName))?.[0] as
    | RuntimeName
    | undefined;

const titlesOf = (ids: readonly RuntimeId[]) => ids.map((id) => runtimes[id].title).join(', ');

/** `llama.cpp, Ollama, LM Studio`. */
export const placeTitle = (id: PlaceId) => places[id].title || titlesOf(places[id].runtimes);

/** What reads the formats, for a place that has a title of its own; else ''. */
export const placeRuntimes = (id: PlaceId, format: OutputFormat) =>
  titlesOf(places[id].runtimes.filter((runtime) => (runtimes[runtime].formats as readonly string[]).includes(format)));

/** `llama.cpp, Ollama, … and AMD Quark`: of all places. */
export function allTitles(): string {
  const titles = placeIds.flatMap((id) => places[id].runtimes.map((runtime) => runtimes[runtime].title as string));
  return `${titles.slice(0, -1).join(', ')} and ${titles.at(-1)}`;
}
