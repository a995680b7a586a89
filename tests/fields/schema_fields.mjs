// The fields of a dialect's configs, from the JSON Schema that the build derives from the parsers' tables of keys.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';

export const dialects = ['quark', 'brevitas', 'aihwkit', 'compressed-tensors', 'gptq', 'awq', 'fp8', 'gguf'];

/** Values that a field can take by its schema alone; undefined: any. */
function valuesOf(node) {
  if (node.anyOf?.[0].enum) return valuesOf(node.anyOf[0]); // beside a pattern of other spellings
  if (node.enum) return node.enum.filter((value) => value !== null);
  const types = [node.type ?? []].flat();
  if (types.includes('boolean')) return [true, false];
  return undefined;
}

/** Places whose specs are read by the code that reads those of `global_quant_config`: their inner fields are not listed again. */
const repeated =
  /(^|\.)(layer_type_quant_config|layer_quant_config|kv_cache_quant_config)\.\*\.\w+$|\.bias$|^kv_cache_scheme$|^softmax_quant_spec$/;
/** Of the two lists of Quark's algorithms one is enough. */
const repeatedList = 'pre_quant_opt_config';

/** What a schema node is made of: itself, or the choices of an anyOf, with references followed. */
function choicesOf(node, definitions) {
  const at = node.$ref ? definitions[node.$ref.slice('#/$defs/'.length)] : node;
  return at.anyOf ? at.anyOf.flatMap((choice) => choicesOf(choice, definitions)) : [at];
}

/**
 * Every field, depth first: {path, node}. `path` has the keys down to the field; `*` stands for a name in a map, and
 * an item of a list of algorithms is its name in brackets: ["algo_config", "[gptq]", "damp_percent"].
 */
export function fieldsOf(dialect) {
  const schema = JSON.parse(readFileSync(join(root, `dist/schema/${dialect}.json`), 'utf8'));
  const definitions = schema.$defs ?? {};
  const fields = [];
  const visit = (properties, path) => {
    for (const [key, node] of Object.entries(properties)) {
      if (node.deprecated) continue;
      const at = [...path, key];
      const choices = choicesOf(node, definitions);
      const types = [...new Set(choices.flatMap(({ type }) => type ?? []))].filter((type) => type !== 'null');
      fields.push({ path: at, values: valuesOf(node), standard: node.default, types });
      if (!repeated.test(at.join('.')) && !(dialect === 'quark' && key === repeatedList)) descend(choices, at);
    }
  };
  const descend = (choices, at) => {
    for (const choice of choices) {
      if (choice.properties?.name?.enum && dialect !== 'gguf') {
        // GGUF's recipes have Quark's algorithms, read by the same code.
        for (const name of choice.properties.name.enum) {
          const { name: _, ...rest } = choice.properties;
          fields.push({ path: [...at, `[${name}]`], types: ['object'] });
          visit(rest, [...at, `[${name}]`]);
        }
      } else if (choice.properties && !choice.properties.name?.enum) {
        visit(choice.properties, at);
      } else if (typeof choice.additionalProperties === 'object' && !at.includes('*')) {
        const inner = choicesOf(choice.additionalProperties, definitions);
        if (inner.some(({ properties }) => properties)) descend(inner, [...at, '*']);
      } else if (choice.items?.anyOf || choice.items?.$ref) {
        const inner = choicesOf(choice.items, definitions);
        if (inner.some(({ properties }) => properties?.name?.enum)) descend(inner, at);
      }
    }
  };
  visit(schema.properties, []);
  // A field whose value can be of several kinds is one field.
  const seen = new Map();
  for (const field of fields) if (!seen.has(field.path.join('/'))) seen.set(field.path.join('/'), field);
  return [...seen.values()];
}
