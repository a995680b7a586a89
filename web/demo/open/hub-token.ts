// The token for gated and private models of the hub. It is kept only in this tab's memory: it is neither stored nor put into links,
// commands or reports.
import { signal } from '@preact/signals';
import { type HubOptions, QuantizationError } from 'wasmquant';
import type { Failure } from '../app/failure';

export const hubToken = signal('');
/** Whether the last address was refused for want of one. */
export const asksForToken = signal(false);

export function hubOptions(): HubOptions {
  const token = hubToken.value.trim();
  return token === '' ? {} : { token };
}

export const isRefused = (error: unknown) =>
  error instanceof QuantizationError && error.code === 'source-invalid' && /\((401|403)\)/.test(error.detail);

/** The library names its option, the page its field. */
export const inWordsOfPage = (failure: Failure): Failure => ({
  ...failure,
  message: failure.message.replace(' (hub.token, HF_TOKEN)', ' in the field below'),
});
