// How far a run is.

/** Progress of a run. `bytesDone` never falls. */
export interface Progress {
  /** What the run is doing. */
  phase: 'read' | 'calibrate' | 'optimize' | 'quantize' | 'write' | 'evaluate';
  /** Tensor that was worked on last. */
  tensor?: string;
  /** Tensors finished. */
  index: number;
  /** Tensors in all. */
  count: number;
  /** Input bytes finished. */
  bytesDone: number;
  /** Input bytes in all. */
  bytesTotal: number;
  /** Of `quantizeModel`: memory of the engine, here and in all workers, in bytes. Output that waits to be written comes on top. */
  memoryBytes?: number;
}
