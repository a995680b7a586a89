// The outcome of npm run bench as Markdown: tables, and for each kernel below half of memcpy what bounds it.

const number = (value, digits = 2) => (value === null || value === undefined ? '' : value.toFixed(digits));
const table = (titles, rows) =>
  [
    `| ${titles.join(' | ')} |`,
    `|${'---|'.repeat(titles.length)}`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
const sizeText = (bytes) =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${(bytes / 2 ** 20).toFixed(0)} MiB`;

/** From here on a kernel counts as held up by memory, not by arithmetic: it loses that much of its speed outside the cache. */
const memoryBound = 1.5;

/**
 * What bounds a row: with its data in the first-level cache it runs at `gbps_in_cache`. Where that is hardly more than from
 * memory, the instructions on each value are what takes the time, else the memory is.
 */
export function boundOf({ gbps, ratio_to_memcpy: ratio, gbps_in_cache: inCache }) {
  if (ratio === undefined || ratio >= 0.5 || !inCache) return '';
  return inCache < memoryBound * gbps
    ? `arithmetic: ${number(inCache)} GB/s with its data in the first-level cache`
    : `memory: ${number(inCache)} GB/s with its data in the first-level cache`;
}

function kernelTables({ wasm, native, javascript, torch }) {
  const byName = (rows) => new Map((rows ?? []).map((row) => [row.name, row]));
  const [natives, scripts, torches] = [native, javascript, torch].map(byName);
  const rows = wasm.filter((row) => row.gbps !== undefined);
  const products = wasm.filter((row) => row.gflops !== undefined);
  const lines = rows.map((row) => [
    row.name,
    number(row.gbps),
    number(row.ratio_to_memcpy),
    row.ratio_to_reference === undefined ? '' : number(row.ratio_to_reference, 1),
    number(natives.get(row.name)?.gbps),
    number(scripts.get(row.name)?.gbps),
    number(torches.get(row.name)?.gbps),
    boundOf(row),
  ]);
  const titles = [
    'kernel, or dtype and scheme',
    'GB/s',
    'to memcpy',
    'to its scalar reference',
    'native',
    'plain JavaScript',
    'torch',
    'what bounds it, below half of memcpy',
  ];
  const second = products.map((row) => [row.name, number(row.gflops, 1), number(natives.get(row.name)?.gflops, 1)]);
  return [
    '## Kernels\n\nOne thread, WebAssembly unless said otherwise; GB/s of input (float32; 16-bit floats for widening), rounds of a row and of memcpy taking turns. Rows with a scheme find scales and codes.',
    table(titles, lines),
    table(['product', 'GFLOP/s', 'native'], second),
  ];
}

function startTable({ node, runs, bareMilliseconds, rows }) {
  const lines = rows.map(({ command, milliseconds, cpuMilliseconds, toNode, cpuToNode }) => [
    command,
    number(milliseconds, 0),
    number(toNode),
    number(cpuMilliseconds, 0),
    number(cpuToNode),
  ]);
  return [
    `## Start-up\n\nWhole processes, ${runs} turns with bare Node ${node} (\`node -e 0\`: ${number(bareMilliseconds, 0)} ms); medians.`,
    table(['command', 'ms', 'to bare Node', 'processor ms', 'to bare Node'], lines),
  ];
}

function pairTables({
  bytes,
  runs,
  gigabytesPerSecond,
  cpuSecondsPerGigabyte,
  ratios,
  startMilliseconds,
  onnxruntime,
}) {
  const names = { own: 'wasmquant, workers: ', llama: 'llama-quantize Q4_0, threads: ', copy: 'copy of the file' };
  const rows = Object.entries(gigabytesPerSecond).map(([name, { fastest, median }]) => [
    name.replace(/^[a-z]+/, (word) => names[word]),
    number(fastest),
    number(median),
    number(cpuSecondsPerGigabyte[name]),
  ]);
  const ratioRows = Object.entries(ratios)
    .filter(([, ratio]) => ratio)
    .map(([name, { median, smallest, largest }]) => [
      name,
      number(median),
      `${number(smallest)} to ${number(largest)}`,
    ]);
  return [
    `## Whole files\n\n${sizeText(bytes)} of F32 to int4 in groups of 128, with the error of every tensor, ${runs} turns; llama-quantize makes Q4_0 of the same weights. Start-up to the first kernel: ${number(startMilliseconds, 0)} ms. onnxruntime's MatMulNBits quantizer, in memory: ${onnxruntime === null ? 'not found here' : `${number(onnxruntime)} GB/s`}.`,
    table(['', 'GB/s, fastest', 'median', 'processor seconds per GB, least'], rows),
    table(['ratio of speeds, turn by turn', 'median', 'range'], ratioRows),
  ];
}

function growthTable(rows) {
  const lines = rows.map(({ bytes, isSparse, milliseconds, gigabytesPerSecond, peakBytes }) => [
    `${sizeText(bytes)}${isSparse ? ', sparse' : ''}`,
    number(milliseconds, 0),
    number(gigabytesPerSecond, 3),
    sizeText(peakBytes),
  ]);
  return ['## As size grows\n\nOne worker.', table(['input', 'ms', 'GB/s', 'peak over bare Node'], lines)];
}

function memoryTable({ budgets, sparse }) {
  const lines = [...budgets, ...sparse].map(({ bytes, budgetBytes, threads, baseBytes, addedBytes, sha256 }) => [
    sizeText(bytes),
    sizeText(budgetBytes),
    String(threads),
    sizeText(addedBytes),
    sizeText(baseBytes),
    sha256.slice(0, 12),
  ]);
  const titles = ['input', 'budget', 'workers', 'peak over bare Node', 'bare Node', 'SHA-256 of the output'];
  return ['## Memory\n\nResident memory of the whole process.', table(titles, lines)];
}

function chromiumTable({ bytes, threads, node, chromium, chromiumStream, ratios }) {
  const median = (key) => [...ratios.map((each) => each[key])].sort((a, b) => a - b)[ratios.length >> 1];
  return [
    `## Chromium\n\n${sizeText(bytes)} as a File on disk, workers: ${threads}; the same bytes as Node.`,
    table(
      ['', 'GB/s, fastest', 'of Node, median of turns'],
      [
        ['Node', number(node), ''],
        ['Chromium into its private file system', number(chromium), number(median('disk'))],
        ['Chromium into a stream', number(chromiumStream), number(median('stream'))],
      ],
    ),
  ];
}

function ggufTable(rows) {
  const lines = rows.map(({ recipe, bytes, own, llamaQuantize, ratio }) => [
    recipe,
    sizeText(bytes),
    number(own, 3),
    number(llamaQuantize, 3),
    number(ratio),
  ]);
  return [
    '## GGUF to GGUF\n\nOne worker beside llama-quantize with one thread, whole processes, the same bytes.',
    table(['type', 'input', 'GB/s', 'llama-quantize', 'ratio'], lines),
  ];
}

/** `result`: what bench.mjs collected. */
function mixtureTable({ experts, tokens, rows }) {
  const lines = rows.map(({ pipeline, dense, mixture, ratio, ratios }) => [
    pipeline,
    number(dense),
    number(mixture),
    number(ratio),
    `${number(Math.min(...ratios))} to ${number(Math.max(...ratios))}`,
  ]);
  return [
    `## Calibration of a mixture of experts\n\nProcessor time in seconds, against a dense model with as many active weights; ${experts} experts, ${tokens} tokens, one thread.`,
    table(['pipeline', 'dense', 'mixture', 'ratio', 'of single turns'], lines),
  ];
}

export function markdownOf({ machine, kernels, start, files, gguf, mixture, chromium }) {
  const parts = [
    `# Bench\n\n${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, ${machine.date}. Load before and after: ${machine.load.map((load) => number(load, 1)).join(', ')}.`,
  ];
  if (kernels) parts.push(...kernelTables(kernels));
  if (start) parts.push(...startTable(start));
  if (files) parts.push(...pairTables(files.pairs), ...growthTable(files.growth), ...memoryTable(files.memory));
  if (chromium) parts.push(...chromiumTable(chromium));
  if (gguf) parts.push(...ggufTable(gguf));
  if (mixture) parts.push(...mixtureTable(mixture));
  return `${parts.join('\n\n')}\n`;
}
