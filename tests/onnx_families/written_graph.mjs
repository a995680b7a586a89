// A written graph in ONNX Runtime: its outputs for rows of tokens, padded in front and with a cache.

export class WrittenGraph {
  #ort;
  #session;

  constructor(ort, session) {
    this.#ort = ort;
    this.#session = session;
  }

  static async load(ort, bytes) {
    return new WrittenGraph(ort, await ort.InferenceSession.create(bytes, { logSeverityLevel: 3 }));
  }

  release() {
    return this.#session.release();
  }

  #int64(rows) {
    const values = BigInt64Array.from(rows.flat(), BigInt);
    return new this.#ort.Tensor('int64', values, [rows.length, rows[0].length]);
  }

  /** An input of cached keys or values without any. */
  #nothing(name, rows) {
    const { shape } = this.#session.inputMetadata.find((input) => input.name === name);
    return new this.#ort.Tensor('float32', new Float32Array(), [rows, shape[1], 0, shape[3]]);
  }

  /** Rows of equally many tokens; `mask` also of those in the cache, 0 for padding. Resolves to one array for each row, and the new cache. */
  async run(tokens, mask, cache = {}) {
    const places = mask.map((row) => row.map((_, i) => Math.max(row.slice(0, i + 1).reduce((a, b) => a + b) - 1, 0)));
    const given = {
      input_ids: this.#int64(tokens),
      attention_mask: this.#int64(mask),
      position_ids: this.#int64(places.map((row) => row.slice(-tokens[0].length))),
      token_type_ids: this.#int64(tokens.map((row) => row.map(() => 0))),
      ...cache,
    };
    const feeds = this.#session.inputNames.map((name) => [name, given[name] ?? this.#nothing(name, tokens.length)]);
    const { logits, last_hidden_state, ...present } = await this.#session.run(Object.fromEntries(feeds));
    const { data, dims } = logits ?? last_hidden_state;
    const size = dims[1] * dims[2];
    const kept = Object.entries(present).map(([name, value]) => [name.replace('present', 'past_key_values'), value]);
    return {
      rows: tokens.map((_, row) => data.subarray(row * size, (row + 1) * size)),
      columns: dims[2],
      cache: Object.fromEntries(kept),
    };
  }
}
