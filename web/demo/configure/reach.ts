// What can be chosen for the open model: runtimes, their schemes, and the first choice.
import type { Model, OutputFormat } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { places } from '../../present/runtimes/table';
import { sentenceOf } from '../../present/sentence';
import { opened } from '../open/opened';
import { type CardName, type Choice, choice, presets } from './choice';
import { isRecipePreset, takes, usualSchemes } from './formats';
import { type Obstacle, obstacleOf, type Runtime, type RuntimeId, runtimeOf, runtimes, usualRuntime } from './runtimes';
import { type SizeFor, sizeOf, wantSizes, whenSized } from './sizes';

/** Formats of a runtime that the model can be written in. */
const formatsFor = (runtime: Runtime, model: Model): OutputFormat[] =>
  runtime.formats(model).filter((name) => formats.outputs[name].sources.includes(model.format));

const cardNames: readonly CardName[] = ['safe', 'balanced', 'smallest'];

/** Schemes by which it is decided whether a format can be had at all, and that the cards begin with. */
function usualOf(format: OutputFormat): string[] {
  return [...new Set(cardNames.flatMap((name) => usualSchemes[format][name]))];
}

/** Why a runtime cannot be reached; null if it can, or if that is not known yet. */
function refusalOf(runtime: Runtime, model: Model, sizeFor: SizeFor): Obstacle | null {
  const obstacle = obstacleOf(runtime, model);
  if (obstacle) return obstacle;
  let reason = '';
  for (const format of formatsFor(runtime, model))
    for (const preset of usualOf(format)) {
      const size = sizeFor(preset, format);
      if (!size || size.totals) return null;
      reason ||= size.reason;
    }
  return model.config === null && formats.inputs[model.format].hasSiblingFiles && /config\.json/.test(reason)
    ? { reason: 'needs config.json', help: 'Open the whole folder of the model, with config.json and the tokenizer.' }
    : { reason: 'not for this model', help: sentenceOf('The model', reason) };
}

export const obstacleFor = (runtime: Runtime, model: Model) => refusalOf(runtime, model, sizeOf);

/** The first format of a runtime that holds the preset. `sizeFor` plans, or knows. */
export function formatFor(id: RuntimeId, preset: string, model: Model, sizeFor: SizeFor = sizeOf): OutputFormat | null {
  const found = presets.value.find(({ name }) => name === preset);
  return (
    formatsFor(runtimeOf(id), model).find(
      (format) => takes(format, isRecipePreset(found)) && sizeFor(preset, format)?.totals != null,
    ) ?? null
  );
}

/** The first of the usual schemes of a card that the model can have; smaller than the model, where a format makes it smaller. */
export function usualScheme(id: RuntimeId, card: CardName, model: Model, sizeFor: SizeFor) {
  for (const format of formatsFor(runtimeOf(id), model))
    for (const preset of usualSchemes[format][card]) {
      const totals = sizeFor(preset, format)?.totals;
      if (totals && (totals.bytesAfter < model.bytes || format === 'fake-quantized')) return { preset, format, totals };
    }
  return null;
}

/** Plans of models with that many tensors take so long that they are made only for what is looked at. */
export const isLarge = ({ tensors }: Model) => tensors.length > 1500;

/** Looks at what the lists need, while the page is idle. */
export function lookAhead(model: Model): void {
  const { runtime } = choice.peek();
  const own = formatsFor(runtimeOf(runtime), model).flatMap((format) =>
    usualOf(format).map((preset) => ({ preset, format })),
  );
  const others = runtimes.flatMap((other) => {
    const [format] = formatsFor(other, model);
    return format ? usualOf(format).map((preset) => ({ preset, format })) : [];
  });
  wantSizes(isLarge(model) ? own : [...own, ...others]);
}

/** Plans every preset in every format of the runtime; those of other runtimes after that. */
export function lookAtAll(model: Model): void {
  const pairs = (runtime: Runtime) =>
    formatsFor(runtime, model).flatMap((format) =>
      presets.value
        .filter((preset) => takes(format, isRecipePreset(preset)))
        .map((preset) => ({ preset: preset.name, format })),
    );
  const own = runtimeOf(choice.peek().runtime);
  wantSizes([...pairs(own), ...runtimes.filter((runtime) => runtime !== own).flatMap(pairs)]);
}

/** Of a runtime: the balanced card, or what is nearest to it. */
function firstChoice(id: RuntimeId, model: Model, sizeFor: SizeFor): Choice {
  const order: CardName[] = places[id].formats.some((name) => name === 'onnx')
    ? ['safe', 'balanced', 'smallest']
    : ['balanced', 'safe', 'smallest'];
  for (const card of order) {
    const found = usualScheme(id, card, model, sizeFor);
    if (found) return { runtime: id, card, preset: found.preset, format: found.format, configText: null };
  }
  // Nothing makes it smaller: the plan says so.
  const [format = 'compressed-tensors'] = formatsFor(runtimeOf(id), model);
  const preset = usualSchemes[format].balanced[0] ?? '';
  return { runtime: id, card: null, preset, format, configText: null };
}

let decisions = 0;

/** Takes what is decided by sizes, unless something else was chosen or opened meanwhile. */
function decide(model: Model, by: (sizeFor: SizeFor) => Choice): void {
  const own = ++decisions;
  const before = choice.peek();
  const take = (next: Choice) => {
    if (own !== decisions || opened.peek()?.model !== model || choice.peek() !== before) return;
    choice.value = next;
    lookAhead(model);
  };
  const next = whenSized(model, by);
  if (next instanceof Promise) void next.then(take);
  else take(next);
}

export function chooseRuntime(id: RuntimeId, model: Model): void {
  decide(model, (sizeFor) => firstChoice(id, model, sizeFor));
}

/** What was chosen itself before; it stays for the next model if that can go there. */
let wish: RuntimeId | null = null;
export function wishRuntime(id: RuntimeId, model: Model): void {
  wish = id;
  chooseRuntime(id, model);
}

/** The first choice for a model that is being opened. */
export function firstFor(model: Model, shards: number): Choice | Promise<Choice> {
  return whenSized(model, (sizeFor) => {
    const reaches = (id: RuntimeId) => refusalOf(runtimeOf(id), model, sizeFor) === null;
    const usual = wish !== null && reaches(wish) ? wish : usualRuntime(model, shards, reaches);
    const first = firstChoice(usual, model, sizeFor);
    if (first.card !== null || reaches(usual)) return first;
    return firstChoice(runtimes.find(({ id }) => reaches(id))?.id ?? usual, model, sizeFor);
  });
}

/** Runtimes that read a preset of this model, the chosen one first. */
export function runtimesFor(preset: string, model: Model): { runtime: Runtime; format: OutputFormat }[] {
  const { runtime: own } = choice.value;
  const order = [runtimeOf(own), ...runtimes.filter(({ id }) => id !== own)];
  return order.flatMap((runtime) => {
    const format = formatFor(runtime.id, preset, model);
    return format ? [{ runtime, format }] : [];
  });
}

/** A preset, in a format that holds it: the runtime's, or else another's. */
export function chooseScheme(preset: string, model: Model): void {
  const now = choice.peek();
  decide(model, (sizeFor) => {
    const order = [now.runtime, ...runtimes.map(({ id }) => id).filter((id) => id !== now.runtime)];
    for (const runtime of order) {
      const format = formatFor(runtime, preset, model, sizeFor);
      if (format) return { runtime, card: null, preset, format, configText: null };
    }
    return { ...now, card: null, preset, configText: null }; // its plan says what is wrong
  });
}
