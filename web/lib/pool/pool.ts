// Workers, each with an engine, and the jobs waiting for one, or for several that do it as a team. A worker that dies or
// traps is replaced and its job retried once; a second failure is worker-crashed. Abort = terminate; what ends one member
// of a team ends all. Idle workers end after a while.

import { failure, QuantizationError, textOf } from '../api/errors.js';
import type { Job, JobKind, JobResult, WorkProgress } from '../worker/jobs.js';
import type { ContextFiles, FromWorker, Port } from '../worker/protocol.js';

/** Idle workers end after this time, in milliseconds. */
const idleMs = 10_000;

/** One run's files, and the main thread's reader for those that workers cannot read. */
export interface RunContext {
  readonly id: number;
  readonly files: ContextFiles;
  /** Packed tasks that are sent with the jobs that name them. */
  readonly work: readonly Uint8Array[];
  read(input: number, file: number, offset: number, length: number): Promise<Uint8Array>;
}

interface Task {
  context: RunContext;
  job: Job;
  attempts: number;
  resolve: (result: JobResult) => void;
  reject: (error: unknown) => void;
  onProgress: ((progress: WorkProgress) => void) | undefined;
}

interface Slot {
  port: Port;
  isStandIn: boolean;
  ready: boolean;
  memoryBytes: number;
  task: Task | null;
  contexts: Map<number, RunContext>;
  releasing: Map<number, () => void>;
}

/** What works in place of workers until it has taken too long. */
export interface StandIn {
  start(): Port;
  milliseconds: number;
}

/** The pieces of packed work that a job names; none if all were sent with the context. */
function workOf({ parts }: Job, work: readonly Uint8Array[]): [number: number, packed: Uint8Array][] {
  if (work.length === 0) return [];
  const named = new Set(parts.flatMap((part) => ('work' in part && typeof part.work === 'number' ? [part.work] : [])));
  return [...named].map((number) => [number, work[number] ?? new Uint8Array()]);
}

/** Only Node's timers keep a process alive. */
function letEnd(timer: ReturnType<typeof setTimeout>): void {
  if (typeof timer === 'object') timer.unref();
}

export class Pool {
  readonly #start: () => Port;
  readonly #module: WebAssembly.Module;
  readonly #size: number;
  readonly #slots = new Set<Slot>();
  readonly #waiting: Task[] = [];
  #standIn: StandIn | null;
  /** Until workers start. */
  #patience: ReturnType<typeof setTimeout> | null = null;
  #idleTimer: ReturnType<typeof setTimeout> | null = null;
  /** Why the pool takes no more work; null while it does. */
  #closed: { reason: unknown } | null = null;
  #contextId = 0;
  #jobId = 0;

  /** At most `size` workers; they start when first needed. */
  constructor(start: () => Port, module: WebAssembly.Module, size: number, standIn: StandIn | null = null) {
    this.#start = start;
    this.#module = module;
    this.#size = size;
    this.#standIn = standIn;
  }

  /** Linear memory of the workers, as last reported. */
  get memoryBytes(): number {
    return [...this.#slots].reduce((sum, slot) => sum + slot.memoryBytes, 0);
  }

  /** Whether no worker was needed yet. */
  get hasStandIn(): boolean {
    return this.#standIn !== null;
  }

  /** Whether a worker would begin a job now. */
  get isFree(): boolean {
    return (
      !this.#standIn && this.#waiting.length === 0 && (this.#slots.size < this.#size || this.#teamOf(null).length > 0)
    );
  }

  /** Describes a run to the pool; pass the result to `run`, then to `release`. */
  context(files: ContextFiles, read: RunContext['read'], work: RunContext['work'] = []): RunContext {
    return { id: this.#contextId++, files, work, read };
  }

  /** Starts `count` workers, up to the pool's size, so that they load while the caller plans. */
  prepare(count: number): void {
    while (!this.#closed && !this.#standIn && this.#slots.size < Math.min(count, this.#size)) {
      const slot = this.#grow();
      if (!slot) return; // the first job will report the reason
      slot.port.hold(false);
    }
    this.#rest();
  }

  /** Runs one job, whose `members` are at most the workers of the pool; of several, the result is that of the last to end,
   * progress that of all. Errors: the job's; worker-crashed; on abort `signal.reason`, once the worker is gone. */
  async run<K extends JobKind>(
    context: RunContext,
    job: Job<K>,
    signal: AbortSignal | undefined,
    onProgress?: Task['onProgress'],
  ): Promise<JobResult<K>> {
    signal?.throwIfAborted();
    if (this.#closed) throw this.#closed.reason;
    let abort = () => {};
    const result = new Promise<JobResult>((resolve, reject) => {
      const task: Task = { context, job, attempts: 0, resolve, reject, onProgress };
      abort = () => void this.#abort(task, signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      this.#waiting.push(task);
      this.#assign();
    });
    try {
      return (await result) as JobResult<K>; // matches the job's kind
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  async release(context: RunContext): Promise<void> {
    const released = [...this.#slots]
      .filter((slot) => slot.contexts.has(context.id))
      .map(
        (slot) =>
          new Promise<void>((resolve) => {
            slot.releasing.set(context.id, resolve);
            slot.port.hold(true);
            slot.port.post({ type: 'release', context: context.id }, []);
          }),
      );
    await Promise.all(released);
    this.#rest();
  }

  /** Ends all workers; their jobs, and those to come, reject with `reason`. */
  async close(reason: unknown): Promise<void> {
    this.#closed = { reason };
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    this.#stopWaiting();
    this.#idleTimer = null;
    for (const task of this.#waiting.splice(0)) task.reject(reason);
    await Promise.all(
      [...this.#slots].map(async (slot) => {
        const { task } = slot;
        await this.#drop(slot);
        task?.reject(reason);
      }),
    );
  }

  #assign(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    this.#idleTimer = null;
    for (let task = this.#waiting[0]; task; task = this.#waiting[0]) {
      const { members = 1 } = task.job;
      if (members > 1) this.#endStandIn();
      const team = this.#standIn ? this.#standInTeam(this.#standIn) : this.#workerTeam(members);
      if (!team) return;
      this.#waiting.shift();
      for (const slot of team) {
        slot.task = task;
        slot.port.hold(true);
      }
      this.#begin(task);
    }
  }

  /** Null while too few are free. */
  #workerTeam(members: number): Slot[] | null {
    const team = this.#teamOf(null).slice(0, members);
    while (team.length < members) {
      const slot = this.#grow();
      if (!slot) return null;
      team.push(slot);
    }
    return team;
  }

  /** What it has begun, it ends. */
  #endStandIn(): void {
    this.#standIn = null;
    for (const slot of this.#slots) if (slot.isStandIn && !slot.task) void this.#drop(slot);
  }

  /** Null while it is busy. */
  #standInTeam({ start, milliseconds }: StandIn): Slot[] | null {
    this.#patience ??= setTimeout(() => {
      this.#endStandIn();
      this.#assign();
    }, milliseconds);
    letEnd(this.#patience);
    const slot = [...this.#slots][0] ?? this.#grow(start);
    return slot && !slot.task ? [slot] : null;
  }

  #grow(start?: () => Port): Slot | null {
    if ([...this.#slots].filter(({ isStandIn }) => !isStandIn).length >= this.#size) return null;
    let port: Port;
    try {
      port = (start ?? this.#start)();
    } catch (error) {
      const detail = `a worker cannot be started: ${textOf(error)}; pass workerUrl, or threads: 0`;
      for (const task of this.#waiting.splice(0)) task.reject(failure('worker-crashed', '', detail, error));
      return null;
    }
    const slot: Slot = {
      port,
      isStandIn: start !== undefined,
      ready: false,
      memoryBytes: 0,
      task: null,
      contexts: new Map(),
      releasing: new Map(),
    };
    this.#slots.add(slot);
    port.listen(
      (message) => this.#receive(slot, message),
      (reason) => void this.#crashed(slot, reason),
    );
    port.post({ type: 'start', module: this.#module }, []);
    return slot;
  }

  /** Sends the job once all members are ready. */
  #begin(task: Task): void {
    const team = this.#teamOf(task);
    if (team.every((slot) => slot.ready))
      for (const [member, slot] of team.entries()) this.#dispatch(slot, task, member);
  }

  /** The workers at a task; null: those without. */
  #teamOf(task: Task | null): Slot[] {
    return [...this.#slots].filter((slot) => slot.task === task);
  }

  #dispatch(slot: Slot, task: Task, member: number): void {
    const { context } = task;
    if (!slot.contexts.has(context.id)) {
      slot.contexts.set(context.id, context);
      slot.port.post({ type: 'context', context: context.id, files: context.files }, []);
    }
    const work = workOf(task.job, context.work);
    slot.port.post({ type: 'job', id: this.#jobId++, context: context.id, job: task.job, work, member }, []);
  }

  #receive(slot: Slot, message: FromWorker): void {
    if (!this.#slots.has(slot)) return;
    if ('memoryBytes' in message) slot.memoryBytes = message.memoryBytes;
    switch (message.type) {
      case 'ready':
        slot.ready = true;
        if (slot.task) this.#begin(slot.task);
        return;
      case 'done': {
        const task = this.#finish(slot);
        if (task && this.#teamOf(task).length === 0) task.resolve(message.result);
        return;
      }
      case 'failed': {
        const task = this.#finish(slot);
        if (task) void this.#dropTeam(task).then(() => task.reject(new QuantizationError(message.error)));
        return;
      }
      case 'share': {
        const others = this.#teamOf(slot.task).filter((other) => other !== slot);
        // The last one gets the bytes themselves, which the others have copied.
        for (const other of others)
          other.port.post(
            { ...message, type: 'shared' },
            other === others.at(-1) ? message.bytes.map(({ buffer }) => buffer) : [],
          );
        return;
      }
      case 'progress':
        slot.task?.onProgress?.(message.progress);
        return;
      case 'crashed':
        void this.#crashed(slot, message.message);
        return;
      case 'read':
        void this.#answer(slot, message);
        return;
      case 'released':
        slot.contexts.delete(message.context);
        slot.releasing.get(message.context)?.();
        slot.releasing.delete(message.context);
        this.#relax(slot);
        return;
    }
  }

  #finish(slot: Slot): Task | null {
    const { task } = slot;
    slot.task = null;
    this.#relax(slot);
    if (slot.isStandIn && !this.#standIn) void this.#drop(slot);
    // The run may add its next job first; then the worker is offered to others.
    queueMicrotask(() => this.#assign());
    return task;
  }

  /** Lets the process end unless a job uses this worker. */
  #relax(slot: Slot): void {
    slot.port.hold(slot.task !== null || slot.releasing.size > 0);
  }

  async #answer(
    slot: Slot,
    { request, context, input, file, offset, length }: Extract<FromWorker, { type: 'read' }>,
  ): Promise<void> {
    try {
      const found = slot.contexts.get(context);
      if (!found) throw new Error('the run has ended');
      // Transfers a copy, because the source may reuse its buffer.
      const bytes = (await found.read(input, file, offset, length)).slice();
      slot.port.post({ type: 'bytes', request, bytes }, [bytes.buffer as ArrayBuffer]);
    } catch (error) {
      const plain = error instanceof QuantizationError ? error : failure('read-failed', '', textOf(error), error);
      slot.port.post({ type: 'bytes-failed', request, error: plain.toPlain() }, []);
    }
  }

  async #crashed(slot: Slot, reason: string): Promise<void> {
    if (!this.#slots.has(slot)) return;
    const { task } = slot;
    await Promise.all([this.#drop(slot), task && this.#dropTeam(task)]);
    if (task) {
      task.attempts += 1;
      if (task.attempts < 2) {
        this.#waiting.unshift(task);
      } else {
        const detail = slot.ready
          ? `a worker died twice on this work (${reason}); a smaller memoryBudgetBytes or fewer threads may help`
          : `a worker cannot be started: ${reason}`;
        task.reject(failure('worker-crashed', task.job.label, detail));
      }
    }
    this.#assign();
  }

  async #abort(task: Task, reason: unknown): Promise<void> {
    const position = this.#waiting.indexOf(task);
    if (position >= 0) this.#waiting.splice(position, 1);
    await this.#dropTeam(task);
    task.reject(reason);
    this.#assign();
  }

  /** Ends the workers that are at the task. */
  async #dropTeam(task: Task): Promise<void> {
    await Promise.all(this.#teamOf(task).map((slot) => this.#drop(slot)));
  }

  async #drop(slot: Slot): Promise<void> {
    this.#slots.delete(slot);
    for (const resolve of slot.releasing.values()) resolve();
    await slot.port.terminate();
  }

  #stopWaiting(): void {
    if (this.#patience !== null) clearTimeout(this.#patience);
    this.#patience = null;
  }

  #rest(): void {
    if (this.#waiting.length > 0 || [...this.#slots].some((slot) => slot.task)) return;
    this.#stopWaiting(); // the next run has its own time
    this.#idleTimer ??= setTimeout(() => {
      this.#idleTimer = null;
      for (const slot of this.#slots) if (!slot.task) void this.#drop(slot);
    }, idleMs);
    letEnd(this.#idleTimer);
  }
}
