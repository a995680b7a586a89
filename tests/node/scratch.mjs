// Folders and quantizers that end with the test that asked for them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';

export const files = join(import.meta.dirname, '../files');
export const tinyLlama = join(files, 'tiny-llama');

export function scratchFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function quantizerFor(t, options = { threads: 0 }) {
  const quantizer = await createQuantizer(options);
  t.after(() => quantizer[Symbol.asyncDispose]());
  return quantizer;
}

export async function modelFor(t, quantizer, source) {
  const model = await quantizer.open(source);
  t.after(() => model.close());
  return model;
}

/** A sink that keeps what it gets; `closed` and `aborted` say how it ended. */
export function memoryStream(onWrite = async () => {}) {
  const chunks = [];
  const state = { closed: false, aborted: undefined };
  const stream = new WritableStream({
    async write(chunk) {
      await onWrite(chunk);
      chunks.push(chunk.slice());
    },
    close() {
      state.closed = true;
    },
    abort(reason) {
      state.aborted = reason;
    },
  });
  return { stream, state, bytes: () => new Uint8Array(Buffer.concat(chunks)) };
}
