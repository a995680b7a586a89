// web/lib/generated/config_types.ts, of the core's tables of keys: keys, kinds and words are those of the schemas, the
// rest is that of keys.def; and dialects.ts, of the table of tools.

/** Of each class of a schema: its interface, and what that is. */
const classes = {
  QTensorConfig: [
    'QuantizationSpec',
    "How one tensor is quantized, in Quark's terms (config keys keep their snake_case).",
  ],
  QLayerConfig: ['QuarkLayerConfig', "Config of one layer or of all that match a pattern (Quark's QLayerConfig)."],
  QConfig: ['QuarkConfig', "AMD Quark's QConfig, with some keys of this library."],
  WeightQuantConfig: ['AihwkitWeightConfig', "aihwkit's WeightQuantConfig."],
  ActivationQuantConfig: ['AihwkitActivationConfig', "aihwkit's ActivationQuantConfig."],
  QuantizationConfig: ['AihwkitLayerConfig', "aihwkit's QuantizationConfig."],
  QuantizedModuleConfig: ['AihwkitModuleConfig', "aihwkit's QuantizedModuleConfig."],
  QuantizationMap: ['AihwkitConfig', "IBM aihwkit's QuantizationMap."],
  BrevitasTensorConfig: ['BrevitasTensorConfig', "A tensor of Quark's Brevitas extension."],
  BrevitasLayerConfig: ['BrevitasLayerConfig', "The layer config of Quark's Brevitas extension."],
  BrevitasConfig: ['BrevitasConfig', "The Config of Quark's Brevitas extension."],
  GgufConfig: ['GgufConfig', 'A recipe for GGUF files, named as in llama.cpp, with exceptions.'],
};

/** Breaks text into lines of at most `width`. */
function* wrapped(text, width) {
  let line = '';
  for (const word of text.split(' ')) {
    if (line && line.length + 1 + word.length > width) {
      yield line;
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  yield line;
}

function comment(text, indent = '') {
  const lines = [...wrapped(text, 117 - indent.length)];
  if (lines.length === 1 && indent.length + text.length + 7 <= 120) return `${indent}/** ${text} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`;
}

const union = (words) =>
  words
    .filter((word) => word !== null)
    .map((word) => `'${word}'`)
    .join(' | ');

const plain = { boolean: 'boolean', integer: 'number', number: 'number', string: 'string', object: 'object' };

/** The TypeScript of a node of a schema, without null. */
function typeOf(node, at) {
  if (node.enum) return union(node.enum);
  if (node.$ref) return classes[node.$ref.slice('#/$defs/'.length)]?.[0] ?? 'object';
  if (node.anyOf)
    return [
      ...new Set(
        node.anyOf.filter(({ type, pattern }) => type !== 'null' && !pattern).map((choice) => typeOf(choice, at)),
      ),
    ].join(' | ');
  const types = [node.type].flat().map((type) => {
    if (type === 'array') return `${node.items ? typeOf(node.items, at) : unknownType(at)}[]`;
    if (typeof node.additionalProperties === 'object')
      return `Record<string, ${typeOf(node.additionalProperties, at)}>`;
    return type === 'null' ? null : (plain[type] ?? unknownType(at));
  });
  return [...new Set(types.filter((type) => type !== null))].join(' | ');
}

function unknownType(at) {
  throw new Error(`The schema does not say the TypeScript type of ${at}: name it in its row of keys.def.`);
}

/** One member: the type of the row, or that of the schema. */
function member({ key, type, text }, properties, title) {
  const node = properties[key];
  if (!node) throw new Error(`keys.def has ${title}.${key}, and the schema does not.`);
  const name = /^[\w$]+$/.test(key) ? key : `'${key}'`;
  const whole = type || `${typeOf(node, `${title}.${key}`)} | null`;
  return `${comment(text, '  ')}  ${name}${whole.startsWith('!') ? '' : '?'}: ${whole.replace('!', '')};\n`;
}

/** Text of web/lib/generated/config_types.ts. */
export function configTypes(schemas, keys) {
  const found = {};
  for (const schema of Object.values(schemas))
    for (const [title, definition] of [[schema.title, schema], ...Object.entries(schema.$defs ?? {})])
      if (keys[title]) found[title] = definition.properties;
  const common = keys[''].map(({ key }) => key);
  const shared = found.QConfig;
  const interfaces = Object.entries(classes).map(([title, [name, text]]) => {
    const rows = keys[title];
    const own = new Set(rows.map(({ key }) => key));
    const rest = Object.entries(found[title]).filter(([key, { deprecated }]) => !deprecated && !own.has(key));
    const strange = rest.filter(([key]) => !common.includes(key));
    if (strange.length > 0) throw new Error(`keys.def lacks ${strange.map(([key]) => `${title}.${key}`).join(', ')}.`);
    const members = rows.map((row) => member(row, found[title], title)).join('');
    return `${comment(text)}export interface ${name}${rest.length > 0 ? ' extends CommonConfig' : ''} {\n${members}}\n`;
  });
  return `// Made by the build of the core's tables of keys (keys.def of each dialect). \`null\` means "not given" everywhere.

/** One spec, or two stages applied in order. */
export type Stages = QuantizationSpec | QuantizationSpec[];

/** Class names a config can assign to layers. */
export type LayerType = ${union(shared.layer_types.additionalProperties.enum)};

/** How aihwkit finds a range. */
export type RangeEstimator = ${typeOf(found.WeightQuantConfig.range_estimator, 'range_estimator')};

/** Keys that every dialect accepts. */
export interface CommonConfig {
${keys[''].map((row) => member(row, shared, 'CommonConfig')).join('')}}

${interfaces.join('\n')}`;
}

/** Text of web/lib/generated/dialects.ts: names of the config dialects that can be written, as values and as a type. */

export const dialectTypes = (
  dialects,
  presets,
) => `// Made by the build of src/tools/tools.def, src/config/presets.cpp and src/tables/recipes.def.
import type { AihwkitConfig, BrevitasConfig, GgufConfig, QuarkConfig } from './config_types.js';

export const dialects = ['${dialects.join("', '")}'] as const;
/**
 * Config dialects, all readable and writable: AMD Quark's own, its Brevitas extension, IBM aihwkit, and the
 * \`quantization_config\` blocks of compressed-tensors, GPTQ and AWQ models. Blocks of fp8 models are read-only.
 */
export type Dialect = ${union(dialects)};
/** The name of a ready-made config: \`quantizer.presets()\` has their texts. */
export type PresetName = ${union(presets)};
/** A preset's name, the JSON text of a config, or the config; of other tools, too (\`Dialect\`). */
export type Config = PresetName | QuarkConfig | BrevitasConfig | AihwkitConfig | GgufConfig | (string & {}) | object;
`;
