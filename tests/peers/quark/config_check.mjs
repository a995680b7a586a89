// Configs built by Quark, written as its own JSON, and planned by us on the same model: the spec of every layer is that which Quark sets on its
// modules ("resolution": "replace"), and with our own resolution that of the documentation (applied_specs.py). Then the block that we write
// into config.json is read by Quark, which must set what our plan says.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { effectText } from './differences/effect.mjs';
import { Row } from './rows.mjs';

/** A plan, or the diagnostics that refuse it. */
async function planOf(quantizer, model, config, format = 'fake-quantized') {
  try {
    return { plan: await quantizer.plan(model, config, { format }) };
  } catch (error) {
    if (!error.diagnostics?.length && !error.code) throw error;
    const problems = (error.diagnostics ?? []).filter(({ severity }) => severity === 'error');
    return { problems: problems.length > 0 ? problems : [{ code: error.code, where: '', message: error.message }] };
  }
}

/** Layers whose spec in `plan` is not `wanted(name)`, a function to the text of a spec's effect. */
function differingLayers(plan, { layers, others }, wanted) {
  const found = [];
  for (const tensor of plan.tensors) {
    const { layer, name } = tensor;
    if (!name.endsWith('.weight') || (!(layer in layers) && !(layer in others))) continue;
    const ours = effectText(tensor.stages ?? tensor.spec);
    const theirs = wanted(layer);
    if (ours !== theirs) found.push({ layer, tensor, ours, theirs, isOfOwnClass: layer in others });
  }
  return found;
}

/** Layers that Quark knows and the plan lacks. */
function missingLayers(plan, { layers }) {
  const planned = new Set(plan.tensors.map(({ layer }) => layer));
  return Object.keys(layers).filter((layer) => !planned.has(layer));
}

/** A spec as a file names it: Quark cannot make a TQTObserver from JSON. */
const loadable = (spec) =>
  spec?.observer_cls === 'TQTObserver' ? { ...spec, observer_cls: 'PerTensorMinMaxObserver' } : spec;

/** Of layers that are only cast: blocks name them only where inputs are quantized, too, because Quark looks for their scales. */
const casts = ['bfloat16', 'float16'].map((dtype) => effectText({ dtype }));

/** What our plan of format "quark" sets on the layers that Quark knows, and the block that says so; null when that format is refused. */
async function written(quantizer, { model, layers }, config) {
  const { plan } = await planOf(quantizer, model, config, 'quark');
  if (!plan?.quantizationConfig) return null;
  const known = plan.tensors.filter(({ layer, name }) => layer in layers && name.endsWith('.weight'));
  const weights = new Map(known.map(({ layer, stages, spec }) => [layer, effectText(stages ?? loadable(spec))]));
  return { block: plan.quantizationConfig, weights };
}

/** The row of blocks that Quark reads: `blocks` has {name, model, block, weights}. */
async function checkWritten(environment, folder, blocks) {
  const row = new Row('configs: Quark reads our quantization_config and sets what our plan says');
  const file = join(folder, 'blocks.jsonl');
  const lines = blocks.map(({ name, model, block }) => `${JSON.stringify({ name, model, config: block })}\n`);
  writeFileSync(file, lines.join(''));
  const open = new Map(blocks.map((entry) => [entry.name, entry]));
  for await (const { name, weights, error } of environment.lines('read_configs.py', file)) {
    const wanted = open.get(name).weights;
    open.delete(name);
    const isSame = (found, text) => found === text || (found === 'none' && casts.includes(text));
    const differing = error ? [] : [...wanted].filter(([layer, text]) => !isSame(effectText(weights[layer]), text));
    const [[layer, text] = []] = differing;
    if (error) row.fail(name, error);
    else if (layer) row.fail(name, `${layer}\n    Quark ${effectText(weights[layer])}\n    ours  ${text}`);
    else row.passed++;
  }
  for (const name of open.keys()) row.fail(name, 'not read');
  return row;
}

/** Rows of the table. */
export async function checkConfigs(environment, quantizer, folder, { seed, count }) {
  const models = new Map();
  const applied = new Row(
    'configs: the spec of each layer, with resolution replace, is what Quark sets on its modules',
  );
  const documented = new Row('configs: the spec of each layer, with our resolution, is what the documentation says');
  const differing = { configs: 0, layers: 0 };
  const blocks = [];
  for await (const line of environment.lines('config_cases.py', folder, seed, count)) {
    if (!line.name) {
      models.set(line.model, { ...line, model: await quantizer.open(join(folder, line.model)) });
      continue;
    }
    const entry = models.get(line.model);
    const textOf = (index) => effectText(line.specs[index]);
    const byQuark = (layer) => textOf(line.layers[layer]?.weight);
    const byDocuments = (layer) => (layer in entry.others ? 'none' : textOf(line.documented[layer]));
    for (const [row, resolution, wanted] of [
      [applied, 'replace', byQuark],
      [documented, 'field', byDocuments],
    ]) {
      const { plan, problems } = await planOf(quantizer, entry.model, { ...line.config, resolution });
      const differences = plan && differingLayers(plan, entry, wanted);
      row.add(line.name, { problems, differences, missing: plan && missingLayers(plan, entry) });
    }
    const own = await written(quantizer, entry, line.config);
    if (own) blocks.push({ name: line.name, model: line.model, ...own });
    const layers = Object.keys(entry.layers).filter((layer) => byQuark(layer) !== byDocuments(layer)).length;
    if (layers > 0) differing.configs++;
    differing.layers += layers;
  }
  documented.note = `Quark’s code does otherwise than that in ${differing.layers} layers of ${differing.configs} configs`;
  for (const { model } of models.values()) model.close();
  return [applied, documented, await checkWritten(environment, folder, blocks)];
}
