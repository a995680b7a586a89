// A cell of the table: a family, a preset (perhaps with rules) and a format. The command line quantizes as a person would; load_family.py loads.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { isLoadersLimit } from './cases.mjs';

/** Largest relative difference of an output that counts as equal. */
const tolerance = 1e-5;

const thread = new URL('./command_thread.mjs', import.meta.url);

/** `wasmquant quantize`: `{ ok, code, stdout, stderr, report }`. Without workers: for models so small, starting them is a third of the time. */
function quantize(source, output, args) {
  const report = `${output}.report.json`;
  const argv = ['quantize', source, '-o', output, '-r', report, '--no-color', '--threads', '0', ...args];
  return new Promise((resolve, reject) => {
    const printed = { 1: '', 2: '' };
    const worker = new Worker(thread, { argv, workerData: { columns: {} } });
    worker.on('message', ({ descriptor, text }) => {
      printed[descriptor] += text;
    });
    worker.on('error', reject);
    worker.on('exit', (code) => {
      const written = code === 0 && existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : null;
      resolve({ ok: code === 0, code, stdout: printed[1], stderr: printed[2], report: written });
    });
  });
}

const quantizedNames = ({ tensors }) => tensors.filter(({ action }) => action === 'quantize').map(({ name }) => name);

/** What is printed of a file that was written with the warning that transformers cannot load it. The lines are another runtime's then. */
const isUnloadable = ({ stdout }) => stdout.includes('transformers cannot load this file (loader-limit)');

/** The lines under "to load it": the Python that is printed, as it is. */
export function loadLines(stdout) {
  const lines = stdout.split('\n');
  const start = lines.indexOf('to load it');
  if (start < 0) return [];
  const end = lines.indexOf('', start);
  const own = lines.slice(start + 1, end < 0 ? undefined : end).map((line) => line.slice(2));
  return own.filter((line) => /^(#|from |import |\w+ = )/.test(line));
}

/** Why weights of a plan stay as they are, the largest first. */
function reasonsLeft({ tensors }) {
  const bytes = new Map();
  for (const { action, layerType, reason, bytesBefore } of tensors)
    if (action === 'copy' && layerType !== 'Norm') bytes.set(reason.text, (bytes.get(reason.text) ?? 0) + bytesBefore);
  return [...bytes].sort((a, b) => b[1] - a[1]).map(([text]) => text);
}

/** `{ verdict, text }` of what load_family.py found. */
function judge(found) {
  if (found.error) return { verdict: 'failed', text: found.error };
  if (Object.keys(found.keys).length > 0) return { verdict: 'wrong', text: `keys: ${JSON.stringify(found.keys)}` };
  if (found.weights) return { verdict: 'wrong', text: found.weights };
  if (!(found.difference <= tolerance)) return { verdict: 'wrong', text: `outputs differ by ${found.difference}` };
  return null;
}

/** Of a written folder: right, or left when nothing in it is quantized. */
function verdictOf(run, found) {
  const problem = judge(found);
  // Written because a rule or a flag asked for it, with the warning that transformers cannot load it.
  if (problem?.verdict === 'failed' && isUnloadable(run))
    return { verdict: 'refused', text: `warned: ${problem.text}` };
  if (problem) return problem;
  if (run.report.totals.quantized === 0) return { verdict: 'left', text: reasonsLeft(run.report)[0] ?? '' };
  if (!(found.change > 0)) return { verdict: 'wrong', text: 'the outputs are those of the source' };
  return { verdict: 'right', text: '' };
}

function verdictOfRefusal({ code, stderr }) {
  const text = stderr.split('\n').find((line) => line.startsWith('error')) ?? stderr;
  return { verdict: code === 1 && isLoadersLimit(stderr) ? 'refused' : 'failed', text };
}

/** Of what is written, the key in a case of load_family.py. */
const keys = { 'compressed-tensors': 'compressed', 'fake-quantized': 'fake' };
export const formats = Object.keys(keys);

/** The formats `written` and the printed lines of one family and preset: `{ compressed, fake, lines }`, each `{ verdict, text }`. */
export async function runCase(loader, families, work, { family, preset, args: own = [], more, written }) {
  const args = [...own, ...more];
  const source = join(families, family);
  const runs = await Promise.all(
    written.map(async (format) => {
      if (!(format in keys)) throw new Error(`no format is called ${format} here; there are ${formats.join(', ')}`);
      const folder = join(work, keys[format]);
      const run = await quantize(source, folder, ['--preset', preset, '--format', format, ...args]);
      return { ...run, key: keys[format], folder };
    }),
  );
  const valid = runs.filter(({ ok }) => ok);
  const lines = valid
    .filter((run) => run.key === keys['compressed-tensors'] && !isUnloadable(run))
    .flatMap(({ stdout }) => loadLines(stdout));
  const outcome = await loader.ask({
    name: family,
    preset: args.some((arg) => arg.startsWith('-l') || arg === '--layer') ? null : preset,
    source,
    inputs: `${source}.inputs.safetensors`,
    quantized: Object.fromEntries(valid.map(({ key, report }) => [key, quantizedNames(report)])),
    ...Object.fromEntries(valid.map(({ key, folder }) => [key, folder])),
    ...(lines.length > 0 && { lines }),
  });
  return {
    ...Object.fromEntries(
      runs.map((run) => [run.key, run.ok ? verdictOf(run, outcome[run.key]) : verdictOfRefusal(run)]),
    ),
    ...(outcome.lines && { lines: judge(outcome.lines) ?? { verdict: 'right', text: '' } }),
  };
}
