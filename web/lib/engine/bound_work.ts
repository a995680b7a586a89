// Packed tasks, as the module binds them (bindings/work.cpp).

/** Tasks, each of one tensor: of a plan; of a comparison, two for each pair; or of a forward pass. They are packed once,
 * and known by their numbers. */
export interface BoundWork {
  /** JSON null, or the error of the constructor. */
  error(): string;
  /** All that decides the output: JSON `HeapBytes`, the same for the same work, however it is cut into tiles; valid until
   * the next call. */
  identity(): string;
  /** For each of `pairs`, JSON `[task, task of former][]`: tasks that copy the output which `former` made. JSON
   * `{copies: ({bytes, tiles}[] | null)[], work: HeapBytes}`: null where the two make something else; the copies are packed
   * one after another, valid until the next call. `options`: JSON `{firstFile, tileBytes, columnTileBytes}`; firstFile: the
   * number that the first file of the former output has among the inputs. */
  copies(former: BoundWork, pairs: string, options: string): string;
  delete(): void;
}
