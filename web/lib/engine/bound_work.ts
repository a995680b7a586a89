// Bindings of packed tasks (bindings/handles/work.cpp).

/** Packed tasks, one per tensor, known by number: of a plan, of a comparison (two per pair), or of a forward pass. */
export interface BoundWork {
  /** A region that identifies the output, independently of tiles. */
  identity(): number;
  /** Tasks that copy the output of `former`. `pairs`: JSON `[task, task of former][]`; `options`: JSON `{firstFile,
   * tileBytes, columnTileBytes}`, firstFile: input number of the former output's first file. Parts: `({bytes, tiles}[] |
   * null)[]`, null if the outputs differ; `work`: the copies, packed in order. */
  copies(former: BoundWork, pairs: string, options: string): number;
  delete(): void;
}
