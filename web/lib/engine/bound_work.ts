// Bindings of packed tasks (bindings/work.cpp).

/** Packed tasks, one per tensor, known by number: of a plan, of a comparison (two per pair), or of a forward pass. */
export interface BoundWork {
  /** JSON null, or the constructor's error. */
  error(): string;
  /** JSON `HeapBytes` that identify the output, independently of tiles; valid until the next call. */
  identity(): string;
  /** Tasks that copy the output of `former`. `pairs`: JSON `[task, task of former][]`; `options`: JSON `{firstFile,
   * tileBytes, columnTileBytes}`, firstFile: input number of the former output's first file. JSON `{copies: ({bytes,
   * tiles}[] | null)[], work: HeapBytes}`, valid until the next call: null if the outputs differ; copies are packed in
   * order. */
  copies(former: BoundWork, pairs: string, options: string): string;
  delete(): void;
}
