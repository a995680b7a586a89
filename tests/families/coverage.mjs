// How much of large mixtures of experts is quantized: `wasmquant plan` on their real shapes, in every format that can hold them.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { largeModels, parametersOf, writeWithoutData } from './large_models.mjs';

/** Of all parameters; the rest are the embedding and the head, routers, norms, and a vision tower. */
const least = 0.95;

/** Models whose experts transformers builds as one parameter, and formats whose experts only vLLM reads. */
const oneParameter = ['gpt-oss-120b'];
const readByVllm = ['awq', 'gptq'];
const arguments_ = {
  'compressed-tensors': ['--preset', 'int4_wo_32'],
  quark: ['--preset', 'int4_wo_32'],
  awq: ['--preset', 'uint4_wo_32'],
  gptq: ['--preset', 'int4_wo_32'],
  'fake-quantized': ['--preset', 'mxfp4'],
};

const wholeBytes = ['--preset', 'int8'];

function plan(folder, format, args) {
  const command = ['dist/cli.js', 'plan', folder, '--format', format, '--json', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 29,
  });
  if (status !== 0)
    return { problem: `wasmquant plan ended with exit code ${status}: ${stderr}${stdout}`.slice(0, 600) };
  return JSON.parse(stdout);
}

/** What is wrong with a plan's coverage, or null. `tensors`: shapes by name. */
function problemOf({ problem, totals, tensors: planned }, tensors) {
  if (problem) return problem;
  const parameters = Object.values(tensors).reduce((sum, shape) => sum + parametersOf(shape), 0);
  // Experts that share a tensor in the model may be planned one by one.
  const counted = planned.reduce(
    (sum, { action, shape }) => sum + (action === 'quantize' ? parametersOf(shape) : 0),
    0,
  );
  const { coverage } = totals;
  if (!coverage) return 'the plan has no totals.coverage';
  if (coverage.parameters !== parameters)
    return `coverage.parameters is ${coverage.parameters}, the model has ${parameters}`;
  if (coverage.quantizedParameters !== counted)
    return `coverage.quantizedParameters is ${coverage.quantizedParameters}, the tensors of the plan have ${counted}`;
  return counted < least * parameters
    ? `${((100 * counted) / parameters).toFixed(1)} % of the parameters are quantized`
    : null;
}

/** What is wrong with a plan that leaves experts by default, or null. `tensors`: shapes by name. */
function problemOfLeft(folder, format, planned, tensors) {
  if (planned.problem) return planned.problem;
  const [first] = planned.diagnostics;
  if (first?.code !== 'low-coverage') return 'the plan does not begin with the share that is left';
  const asked = plan(folder, format, [...arguments_[format], '--include-experts']);
  const isOneParameter = oneParameter.some((name) => folder.endsWith(name));
  if (format !== 'quark' && (isOneParameter || !readByVllm.includes(format)))
    return /transformers builds the experts/.test(asked.problem) ? null : 'experts that nothing reads are not refused';
  if (!/vLLM.*--include-experts/.test(first.hint)) return 'the plan does not say how to quantize the experts for vLLM';
  if (!asked.diagnostics?.some(({ code }) => code === 'loader-limit')) return 'no word about transformers';
  return problemOf(asked, tensors);
}

/** Names of heads. A plan leaves them and embeddings by default, and small models have many parameters in both. */
const head = /(^|\.)(lm_head|output_embeddings|embed_out)\.weight$/;

/** What is wrong with a mixture's plan, or null; a format that cannot hold its experts says so. */
function problemOfMixture(planned, tensors) {
  if (planned.problem) return { isRefused: /transformers/.test(planned.problem), text: planned.problem.slice(0, 160) };
  const total = Object.values(tensors).reduce((sum, shape) => sum + parametersOf(shape), 0);
  const inEnds = planned.tensors.reduce(
    (sum, { name, layerType, shape }) => sum + (layerType === 'Embedding' || head.test(name) ? parametersOf(shape) : 0),
    0,
  );
  const { quantizedParameters } = planned.totals.coverage;
  const [share, inner] = [quantizedParameters / total, quantizedParameters / (total - inEnds)];
  const percent = (part) => `${(100 * part).toFixed(1)} %`;
  const text = `${percent(share)} of ${(total / 1e9).toFixed(1)} G parameters, ${percent(inner)} without embeddings and head`;
  return { isRight: share >= least || inner >= least, share, text };
}

/** Every mixture of transformers at the size of its configuration: `lines` of mixture_shapes.py. Prints a line each; the number of those that are wrong. */
export async function checkMixtures(work, lines, format = 'compressed-tensors') {
  const counts = { covered: 0, left: 0, wrong: 0, 'not made': 0 };
  const print = (type, outcome, text) => {
    counts[outcome]++;
    process.stdout.write(`${type.padEnd(24)} ${outcome.padEnd(8)} ${text}\n`);
  };
  for await (const { type, error, config, tensors } of lines) {
    if (error) {
      print(type, 'not made', error);
      continue;
    }
    const folder = join(work, type);
    writeWithoutData(folder, { config, tensors });
    let args = arguments_[format];
    let found = problemOfMixture(plan(folder, format, args), tensors);
    if (found.isRefused) {
      // A class that reads weights while it loads takes no packed ones.
      args = wholeBytes;
      found = problemOfMixture(plan(folder, format, args), tensors);
      found.text += `, with ${args.at(-1)}`;
    }
    if (found.isRight) print(type, 'covered', found.text);
    else {
      // Experts that the loader has no way to read: asking for them is refused with that reason.
      const asked = plan(folder, format, [...args, '--include-experts']);
      const isLeft = found.isRefused || /transformers/.test(asked.problem ?? '');
      print(type, isLeft ? 'left' : 'wrong', found.text);
    }
    rmSync(folder, { recursive: true });
  }
  process.stdout.write(
    `mixtures: ${Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}\n`,
  );
  return counts.wrong;
}

/** Prints a line a model and format; the number of those that are wrong. */
export function checkCoverage(work) {
  let failed = 0;
  for (const [name, model] of Object.entries(largeModels)) {
    const folder = join(work, name);
    const { config, tensors } = model();
    writeWithoutData(folder, { config, tensors });
    for (const [format, args] of Object.entries(arguments_)) {
      const planned = plan(folder, format, args);
      const leavesOne = ['compressed-tensors', 'quark'].includes(format) && oneParameter.includes(name);
      const isLeft = readByVllm.includes(format) || leavesOne;
      const problem = isLeft ? problemOfLeft(folder, format, planned, tensors) : problemOf(planned, tensors);
      if (problem) failed++;
      const coverage = planned.totals?.coverage;
      const text =
        problem ??
        `${((100 * coverage.quantizedParameters) / coverage.parameters).toFixed(1)} % of ${(coverage.parameters / 1e9).toFixed(1)} G parameters`;
      process.stdout.write(`${name.padEnd(16)} ${format.padEnd(18)} ${problem ? 'FAILED' : 'ok'}  ${text}\n`);
    }
  }
  return failed;
}
