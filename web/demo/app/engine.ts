// The quantizer of this page, from start to end.
import { signal } from '@preact/signals';
import type { Quantizer } from 'wasmquant';
import type { Failure } from './failure';

/** Null until the WebAssembly module is compiled. */
export const quantizer = signal<Quantizer | null>(null);
export const startFailure = signal<Failure | null>(null);
