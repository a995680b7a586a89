// Sizes of real models on the pages of web/docs/run: between `<!-- sizes: MODEL FORMAT:PRESET... -->` and `<!-- end -->` what a plan of the
// model says, which are the sizes of its files to the byte. The models are those of `npm run test:peers -- transformers`.
//   node tests/docs/sizes.mjs [--write]      compares the pages with plans; --write writes them
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from '../peers/markdown_table.mjs';
import { main, root } from '../setup/command.mjs';

const folder = join(root, 'web/docs/run');
const modelsFolder = join(root, '.peers-python/models');
const titles = { smollm2: 'SmolLM2-135M', minilm: 'all-MiniLM-L6-v2' };
const floats = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' };
const block = /(<!-- sizes: (\w+) ?(.*) -->\n)[\s\S]*?(<!-- end -->)/g;

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** The dtype that holds most bytes of a model. */
function dtypeOf(model) {
  const bytes = {};
  for (const tensor of model.tensors) bytes[tensor.dtype] = (bytes[tensor.dtype] ?? 0) + tensor.bytes;
  const [largest] = Object.entries(bytes).sort(([, a], [, b]) => b - a)[0];
  return floats[largest] ?? largest;
}

async function tableOf(quantizer, name, schemes) {
  const model = await quantizer.open(join(modelsFolder, name));
  try {
    const bytes = model.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const rows = schemes.map(async (scheme) => {
      const [format, preset] = scheme.split(':');
      const { totals } = await quantizer.plan(model, preset, { format });
      return [`\`--preset ${preset} --format ${format}\``, megabytes(totals.bytesAfter)];
    });
    return table(
      ['`npx wasmquant plan ./my-model`', 'size'],
      [[`${titles[name]} itself, ${dtypeOf(model)}`, megabytes(bytes)], ...(await Promise.all(rows))],
    );
  } finally {
    await model.close();
  }
}

/** A page with its tables as plans have them now. */
async function withSizes(quantizer, markdown) {
  let text = markdown;
  for (const [whole, begin, name, schemes, end] of markdown.matchAll(block)) {
    const lines = await tableOf(quantizer, name, schemes.split(' ').filter(Boolean));
    text = text.replace(whole, () => `${begin}\n${lines.join('\n')}\n\n${end}`);
  }
  return text;
}

/** Pages whose sizes are not those of plans, written anew if `writes`. Without the models nothing is compared. */
export async function wrongSizes({ writes = false } = {}) {
  const wrong = [];
  const hasModels = Object.keys(titles).every((name) => existsSync(join(modelsFolder, name, 'model.safetensors')));
  if (!hasModels) return wrong;
  const { createQuantizer } = await import('../../dist/node.js');
  const quantizer = await createQuantizer({ threads: 0 });
  try {
    for (const name of readdirSync(folder).sort()) {
      const path = join(folder, name);
      const text = readFileSync(path, 'utf8');
      const right = await withSizes(quantizer, text);
      if (right === text) continue;
      wrong.push(`web/docs/run/${name}`);
      if (writes) writeFileSync(path, right);
    }
  } finally {
    await quantizer.close();
  }
  return wrong;
}

if (process.argv[1] === import.meta.filename)
  main(async () => {
    const writes = process.argv.includes('--write');
    const wrong = await wrongSizes({ writes });
    for (const page of wrong)
      process.stdout.write(`${page} ${writes ? 'written' : 'has sizes that plans do not have'}\n`);
    return writes || wrong.length === 0 ? 0 : 1;
  });
