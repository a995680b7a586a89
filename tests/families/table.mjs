// Verdicts of cells, counted, and what was said of those that are not right.

const marks = { right: '=', left: '-', refused: 'r', wrong: 'W', failed: 'F' };

export class Table {
  /** Cells of both formats, and the printed lines, by verdict. */
  counts = { right: 0, left: 0, refused: 0, wrong: 0, failed: 0 };
  lines = { right: 0, wrong: 0, failed: 0 };
  #texts = new Map();

  /** Counts an outcome of cell.mjs. Returns its marks: compressed-tensors, then fake-quantized. */
  add({ family, preset, args = [] }, outcome) {
    const name = [family, preset, ...args].join(' ');
    for (const [format, { verdict, text }] of Object.entries(outcome)) {
      (format === 'lines' ? this.lines : this.counts)[verdict]++;
      if (verdict === 'right') continue;
      const key = `${verdict}: ${text}`;
      this.#texts.set(key, [...(this.#texts.get(key) ?? []), format === 'compressed' ? name : `${name} (${format})`]);
    }
    return ['compressed', 'fake'].map((format) => (format in outcome ? marks[outcome[format].verdict] : '')).join('');
  }

  /** Each text with the cells that it is of, what is wrong last. */
  summary() {
    const rank = (text) => Object.keys(this.counts).indexOf(text.split(':')[0]);
    const sorted = [...this.#texts].sort((a, b) => rank(a[0]) - rank(b[0]));
    return sorted.map(([text, names]) => `${text}\n    ${names.length} × ${names.join(', ')}\n`).join('');
  }

  /** The share of cells that are right. */
  get share() {
    const all = Object.values(this.counts).reduce((sum, count) => sum + count, 0);
    return all > 0 ? this.counts.right / all : 1;
  }

  get problems() {
    return this.counts.wrong + this.counts.failed + this.lines.wrong + this.lines.failed;
  }

  toString() {
    const text = (counts) =>
      Object.entries(counts)
        .map(([verdict, count]) => `${count} ${verdict}`)
        .join(', ');
    return `lines under "to load it": ${text(this.lines)}\ncells: ${text(this.counts)}\n`;
  }
}
