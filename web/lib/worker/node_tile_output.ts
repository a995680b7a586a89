// Paths that a Node worker writes itself. Heap bytes are gathered in buffers, which another thread writes meanwhile;
// all files share a few buffers, so a slow disk blocks the worker instead of filling memory.

import { closeSync, openSync, write } from 'node:fs';
import { failure, textOf } from '../api/errors.js';
import type { TileOutput } from './tile_input.js';

const bufferBytes = 512 * 1024;
const bufferCount = 4;

class Buffers {
  readonly #free: Buffer[] = [];
  readonly #waiting: ((buffer: Buffer) => void)[] = [];
  #made = 0;

  take(): Buffer | Promise<Buffer> {
    const buffer = this.#free.pop();
    if (buffer) return buffer;
    if (this.#made === bufferCount) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#made += 1;
    return Buffer.allocUnsafeSlow(bufferBytes);
  }

  give(buffer: Buffer): void {
    const next = this.#waiting.shift();
    if (next) next(buffer);
    else this.#free.push(buffer);
  }
}

const buffers = new Buffers();
/** Sends off the one buffer being filled; one per file could use up all buffers. */
let sendFilling = () => {};

function writeFully(descriptor: number, bytes: Uint8Array, position: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const step = (done: number) =>
      write(descriptor, bytes, done, bytes.byteLength - done, position + done, (error, count) => {
        if (error) reject(error);
        else if (done + count < bytes.byteLength) step(done + count);
        else resolve();
      });
    step(0);
  });
}

/** Opens an existing file. Errors: write-failed. */
export function pathOutput(name: string, path: string): TileOutput {
  const fail = (error: unknown) => failure('write-failed', name, `cannot be written: ${textOf(error)}`, error);
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r+');
  } catch (error) {
    throw fail(error);
  }
  const writing = new Set<Promise<void>>();
  let failed: { error: unknown } | null = null;
  /** The buffer being filled: `length` bytes for the file from `begin` on. */
  let filling: { buffer: Buffer; begin: number; length: number } | null = null;

  const check = () => {
    if (failed) throw failed.error;
  };
  const send = () => {
    if (!filling) return;
    const { buffer, begin, length } = filling;
    filling = null;
    const work: Promise<void> = writeFully(descriptor, buffer.subarray(0, length), begin)
      .catch((error: unknown) => {
        failed ??= { error: fail(error) };
      })
      .finally(() => {
        writing.delete(work);
        buffers.give(buffer);
      });
    writing.add(work);
  };

  return {
    async write(instance, pointer, bytes, offset) {
      check();
      for (let done = 0; done < bytes; ) {
        if (filling && filling.begin + filling.length !== offset + done) send();
        if (!filling) {
          sendFilling();
          sendFilling = send;
          filling = { buffer: await buffers.take(), begin: offset + done, length: 0 };
        }
        const { buffer, length } = filling;
        const count = Math.min(bytes - done, bufferBytes - length);
        instance.lend(pointer + done, count, (view) => buffer.set(view, length));
        filling.length += count;
        done += count;
        if (filling.length === bufferBytes) send();
      }
    },
    async settle() {
      send();
      await Promise.all(writing);
      check();
    },
    close: () => closeSync(descriptor),
  };
}
