/** The `<model>` argument: a file, a folder, an index file, or an http(s) URL. */
import type { HubOptions, Model, Quantizer, Source } from '../lib/node.js';
import { bytesText, plural } from '../present/units.js';
import { abortable } from './interrupt.js';
import { printable } from './terminal.js';

/** As other tools read them from the environment. */
function hubOptions(): HubOptions {
  const { HF_TOKEN: token, HF_ENDPOINT: endpoint } = process.env;
  return { ...(token && { token }), ...(endpoint && { endpoint }) };
}

/** How a model is opened. */
export interface ModelFlags {
  stripPrefix?: boolean;
}

/** Opens a model; a signal ends the wait (opening writes nothing). */
export async function openModel(
  quantizer: Quantizer,
  argument: string,
  signal: AbortSignal,
  { stripPrefix = false }: ModelFlags = {},
): Promise<Model> {
  const source: Source = /^https?:\/\//i.test(argument) ? new URL(argument) : argument;
  return await abortable(signal, quantizer.open(source, { stripPrefix, hub: hubOptions() }));
}

/** First class in config.json's `architectures`, or ''. */
function architectureOf(model: Model): string {
  const architectures = model.config?.architectures;
  const first: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  return typeof first === 'string' ? first : '';
}

/** `safetensors, 3 files, 5.15 MB, LlamaForCausalLM`. */
export function modelSummary(model: Model): string {
  const parts = [
    model.format,
    plural(model.files.length, 'file'),
    bytesText(model.bytes),
    printable(architectureOf(model)),
  ];
  return parts.filter(Boolean).join(', ');
}
