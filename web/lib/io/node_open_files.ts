// Files that are written at any position, few of them open at a time: processes may have few descriptors (256 on macOS),
// and models have thousands of shards.

import { type FileHandle, open } from 'node:fs/promises';

const mostOpen = 32;

interface Opened {
  handle: Promise<FileHandle>;
  uses: number;
}

export class OpenFiles {
  /** By path; the one used longest ago is first. */
  readonly #files = new Map<string, Opened>();
  readonly #running = new Set<Promise<void>>();
  readonly #waiting: (() => void)[] = [];
  #isEnded = false;

  /** Creates a file of `bytes` zeros. Errors: the system's, EEXIST among them. */
  create(path: string, bytes: number): Promise<void> {
    return this.#whenRoom(async () => {
      const handle = await open(path, 'wx');
      await handle.truncate(bytes).finally(() => handle.close());
    });
  }

  /** Runs `step` with a handle of an existing file, which it must not keep. Errors: the system's, and those of `step`. */
  use(path: string, step: (handle: FileHandle) => Promise<void>): Promise<void> {
    return this.#whenRoom(async () => {
      const file = this.#files.get(path) ?? { handle: open(path, 'r+'), uses: 0 };
      file.uses += 1;
      this.#files.delete(path);
      this.#files.set(path, file);
      try {
        await step(await file.handle);
      } finally {
        file.uses -= 1;
        await this.#closeOldest();
      }
    });
  }

  /** Closes a file that is not in use; `use` opens it again. */
  async close(path: string): Promise<void> {
    const file = this.#files.get(path);
    if (!file || file.uses > 0) return;
    this.#files.delete(path);
    const handle = await file.handle.catch(() => null); // `use` has reported it
    await handle?.close();
  }

  /** Waits for what runs, and closes all files. */
  async end(): Promise<void> {
    this.#isEnded = true;
    for (const goOn of this.#waiting.splice(0)) goOn();
    await Promise.allSettled(this.#running);
    for (const path of [...this.#files.keys()]) await this.close(path);
  }

  async #whenRoom(step: () => Promise<void>): Promise<void> {
    while (this.#running.size >= mostOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#isEnded) throw new Error('the run has ended');
    const running = step().finally(() => {
      this.#running.delete(running);
      this.#waiting.shift()?.();
    });
    this.#running.add(running);
    await running;
  }

  async #closeOldest(): Promise<void> {
    for (const [path, { uses }] of this.#files) {
      if (this.#files.size <= mostOpen) return;
      if (uses === 0) await this.close(path);
    }
  }
}
