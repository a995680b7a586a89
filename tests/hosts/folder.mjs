// Run by Node, Bun and Deno with a folder's path as the argument: `work` with and without workers, then the folder to a
// folder. Prints JSON, an array of { name, sha256, ... }.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createQuantizer } from 'wasmquant';
import { digest, work } from './work.mjs';

const model = process.argv[2];
const bytes = new Uint8Array(readFileSync(join(model, 'model.safetensors')));
const results = [];
for (const threads of [0, 2])
  results.push({ name: `memory, ${threads} workers`, ...(await work(createQuantizer, bytes, { threads })) });

const folder = mkdtempSync(join(tmpdir(), 'wasmquant-host-'));
const quantizer = await createQuantizer({ threads: 2 });
try {
  const target = join(folder, 'quantized');
  const opened = await quantizer.open(model);
  await quantizer.quantizeModel(opened, 'int4_wo_128', { target });
  await opened.close();
  const sha256 = await digest(readFileSync(join(target, 'model.safetensors')));
  const { quantization_config } = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'));
  results.push({ name: 'folder, 2 workers', sha256, format: quantization_config.format });
} finally {
  await quantizer[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${JSON.stringify(results)}\n`);
