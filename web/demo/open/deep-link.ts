// A place of the page as a link: the model if it has an address, and what was chosen. What a link asks for is read from behind its #, which
// no server sees. An address of a model is filled in and not opened: the link may be a stranger's.
import { signal } from '@preact/signals';
import { type Model, type OutputFormat, outputFormats } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { type Choice, presets } from '../configure/choice';
import { runtimes } from '../configure/runtimes';

export interface Link {
  /** `sample`, an address, or null: any model that is opened next. */
  model: string | null;
  preset: string;
  format: OutputFormat;
  /** JSON text of a config of one's own. */
  configText: string | null;
}

const sampleWord = 'sample';

/** Longer links are cut by some programs that pass them on. */
const mostCharacters = 8000;

function isConfig(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Null: it asks for nothing that this page knows. */
export function linkOf(hash: string): Link | null {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const [model, preset, format, configText] = ['model', 'preset', 'format', 'config'].map((key) => given.get(key));
  const known = outputFormats.find((name) => name === format);
  if (!preset || !known || (configText && !isConfig(configText))) return null;
  return { model: model || null, preset, format: known, configText: configText || null };
}

/** Null: too long. */
export function hashOf({ model, preset, format, configText }: Link): string | null {
  const given = new URLSearchParams({
    ...(model !== null && { model }),
    ...{ preset, format },
    ...(configText !== null && { config: JSON.stringify(JSON.parse(configText)) }),
  });
  const text = `#${given}`;
  return text.length > mostCharacters ? null : text;
}

export const modelOfLink = ({
  isSample,
  isRemote,
  location,
}: {
  isSample?: true;
  isRemote?: true;
  location: string;
}) => (isSample ? sampleWord : isRemote ? location : null);

/** What the address of the page asks for, until a model is opened. */
export const link = signal<Link | null>(linkOf(globalThis.location?.hash ?? ''));

export const asksForSample = ({ model }: Link) => model === sampleWord;

/** The choice of the link, for the model that is opened; null: none that goes with it. The link is followed once. */
export function linkedChoice(model: Model): Choice | null {
  const now = link.peek();
  link.value = null;
  if (!now || !formats.outputs[now.format].sources.includes(model.format)) return null;
  const runtime = runtimes.find((each) => each.formats(model).includes(now.format));
  if (!runtime || !presets.peek().some(({ name }) => name === now.preset)) return null;
  const { preset, format, configText } = now;
  return { runtime: runtime.id, card: null, preset, format, configText };
}
