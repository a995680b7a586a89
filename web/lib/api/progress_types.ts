// Progress of a run.

/** Progress of a run. `bytesDone` never falls. */
export interface Progress {
  /** What the run is doing. */
  phase: 'read' | 'calibrate' | 'optimize' | 'quantize' | 'write' | 'evaluate';
  /** Tensor worked on last. */
  tensor?: string;
  /** Finished tensors. */
  index: number;
  /** All tensors. */
  count: number;
  /** Finished input bytes. */
  bytesDone: number;
  /** All input bytes. */
  bytesTotal: number;
  /** In `quantizeModel`: engine memory of all threads in bytes, without output waiting to be written. */
  memoryBytes?: number;
}
