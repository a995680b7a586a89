// The table of presets, formats and runtimes in web/docs/formats.md: what a format can store is asked of the planner, what loads it is
// in tests/peers/results.json.
//   node tests/docs/format_table.mjs      writes it
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { graph, model, node, noise, tensor } from '../node/onnx/model.mjs';
import { table } from '../peers/markdown_table.mjs';
import { main, root } from '../setup/command.mjs';

const page = join(root, 'web/docs/formats.md');
const marks = [
  '<!-- of presets, formats and tests/peers/results.json: node tests/docs/format_table.mjs -->',
  '<!-- end of the table -->',
];
const formats = ['compressed-tensors', 'quark', 'gptq', 'awq', 'onnx'];
const runtimes = {
  transformers: 'transformers',
  vllm: 'vLLM',
  gptqmodel: 'gptqmodel',
  autoround: 'AutoRound',
  onnxruntime: 'ONNX Runtime',
};

/** x [n, 256] -> MatMul [256, 256]. */
const product = () =>
  model(
    graph({
      nodes: [node('MatMul', ['x', 'w'], ['y'], { name: '/up_proj/MatMul' })],
      tensors: [tensor('w', 'F32', [256, 256], noise(256 * 256, 1))],
      inputs: [['x', 'F32', ['n', 256]]],
      outputs: [['y', 'F32', ['n', 256]]],
    }),
  );

/** Whether the preset itself is stored: a plan that succeeds and falls back to no other dtype. */
async function isStored(quantizer, source, preset, format) {
  try {
    const { diagnostics } = await quantizer.plan(source, preset, { format });
    return !diagnostics.some(({ code, severity }) => severity === 'error' || code === 'int8-instead');
  } catch {
    return false;
  }
}

/** Lines of Markdown. */
export async function formatTable(quantizer) {
  const { rows } = JSON.parse(readFileSync(join(root, 'tests/peers/results.json'), 'utf8'));
  const loaded = rows.flatMap(({ peer, cases = [] }) =>
    cases.filter(({ outcome }) => outcome === 'loads').map(({ format, preset }) => `${peer} ${format} ${preset}`),
  );
  const folder = await quantizer.open(join(root, 'tests/files/tiny-llama'));
  const onnx = await quantizer.open(new File([product()], 'model.onnx'));
  try {
    const presets = quantizer.presets().filter(({ config }) => !config.recipe);
    const cellOf = async (name, format) => {
      if (!(await isStored(quantizer, format === 'onnx' ? onnx : folder, name, format))) return '–';
      const names = Object.entries(runtimes).filter(([peer]) => loaded.includes(`${peer} ${format} ${name}`));
      return names.length > 0 ? names.map(([, title]) => title).join(', ') : 'stored';
    };
    const lines = [];
    for (const { name } of presets) {
      if (name.startsWith('mlx_')) continue; // only for a format of their own
      lines.push([`\`${name}\``, ...(await Promise.all(formats.map((format) => cellOf(name, format))))]);
    }
    return table(['preset', ...formats.map((format) => `\`${format}\``)], lines);
  } finally {
    await folder.close();
    await onnx.close();
  }
}

/** The page with the table between its marks. */
export function withTable(markdown, lines) {
  const [begin, end] = marks;
  const from = markdown.indexOf(begin) + begin.length;
  return `${markdown.slice(0, from)}\n\n${lines.join('\n')}\n\n${markdown.slice(markdown.indexOf(end, from))}`;
}

if (process.argv[1] === import.meta.filename)
  main(async () => {
    const { createQuantizer } = await import(join(root, 'dist/node.js'));
    const quantizer = await createQuantizer({ threads: 0 });
    writeFileSync(page, withTable(readFileSync(page, 'utf8'), await formatTable(quantizer)));
    await quantizer[Symbol.asyncDispose]();
  });
