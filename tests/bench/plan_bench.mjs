// node tests/bench/plan_bench.mjs [tensors]: time and memory of opening and planning a checkpoint of very many matrices, 100,000
// by default. The file is a hole that takes no disk. Times are in milliseconds, of the wall and of the processor; peaks are
// those of the whole process so far, in bytes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer, planJson } from '../../dist/node.js';
import { writeSparseSafetensors } from './model_files.mjs';

const matrices = ['self_attn.q_proj', 'self_attn.o_proj', 'mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj'];
const nameOf = (number) =>
  `model.layers.${Math.floor(number / matrices.length)}.${matrices[number % matrices.length]}.weight`;

/** In a process of its own, whose memory does not count. */
function writeModel(path, count) {
  const tensors = Array.from({ length: count }, (_, number) => ({ name: nameOf(number), shape: [128, 256] }));
  writeSparseSafetensors(path, tensors);
}

async function measured(step) {
  const [started, cpu] = [performance.now(), process.cpuUsage()];
  const result = await step();
  const { user, system } = process.cpuUsage(cpu);
  const figures = {
    ms: Math.round(performance.now() - started),
    cpuMs: Math.round((user + system) / 1000),
    peakBytes: process.resourceUsage().maxRSS * 1024,
  };
  return { result, figures };
}

async function main(count) {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-plan-'));
  const file = join(folder, 'model.safetensors');
  const quantizer = await createQuantizer({ threads: 0 });
  try {
    const { status } = spawnSync(process.execPath, [import.meta.filename, '--write', file, String(count)]);
    if (status !== 0) throw new Error(`writing ${file} ended with exit code ${status}`);
    const idleBytes = process.resourceUsage().maxRSS * 1024;
    const { result: model, figures: open } = await measured(() => quantizer.open(file));
    const { result, figures: plan } = await measured(() => quantizer.plan(model, 'int4_wo_128'));
    const { quantized } = result.totals;
    const jsonBytesPerTensor = JSON.stringify(planJson(result)).length / count;
    process.stdout.write(
      `${JSON.stringify({ tensors: count, quantized, idleBytes, open, plan, jsonBytesPerTensor })}\n`,
    );
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  }
}

const [first = '100000', ...rest] = process.argv.slice(2);
if (first === '--write') writeModel(rest[0], Number(rest[1]));
else await main(Number(first));
