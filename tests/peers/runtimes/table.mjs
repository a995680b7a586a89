// The table of runtimes: peer, format, preset, model, what came of it.

const headers = ['peer', 'format', 'preset', 'model', 'dtype', 'outcome', 'difference', 'bound', 'products', 'tokens'];

const shareText = (share) => (share === 0 ? '0' : share.toExponential(1));
const productText = ({ product }) => (Number.isFinite(product) ? shareText(product) : '');

function outcomeText({ error, problem, refusal, how, isFailure }) {
  const outcome = problem ? `${error ? 'cannot' : 'wrong'}: ${refusal ?? problem.slice(0, 80)}` : 'loads';
  return `${isFailure ? 'FAILED ' : ''}${outcome}${how ? ` (${how})` : ''}`;
}

function tokensText({ tokens, areTokensEqual }) {
  if (!tokens) return 'none';
  return areTokensEqual ? 'equal' : 'differ';
}

/** Lines of text; `difference` and `bound` are shares of the largest logit, `products` of a product of one layer. */
export function runtimeTable(rows) {
  const cells = rows.flatMap(({ peer, cells: found = [] }) => found.map((cell) => ({ ...cell, peer })));
  if (cells.length === 0) return [];
  const texts = cells.map((cell) => [
    cell.peer,
    cell.format,
    cell.preset,
    cell.label,
    cell.dtype,
    outcomeText(cell),
    ...(cell.error
      ? ['', '', '', '']
      : [shareText(cell.share), shareText(cell.bound), productText(cell), tokensText(cell)]),
  ]);
  const widths = headers.map((header, i) => Math.max(header.length, ...texts.map((row) => row[i].length)));
  const line = (row) =>
    row
      .map((text, i) => text.padEnd(widths[i] + 2))
      .join('')
      .trimEnd();
  return ['', line(headers), ...texts.map(line)];
}
