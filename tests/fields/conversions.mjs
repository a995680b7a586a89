// Whether convertConfig loses something of a field unsaid: of every field of a dialect, set alone, the converted config makes the
// same of a model as the original, or a loss names the field or the spec that it belongs to.
import { contexts } from './contexts.mjs';
import { valuesFor } from './probe.mjs';
import { fieldsOf } from './schema_fields.mjs';

/** Dialects that can be converted. */
export const convertible = Object.keys(contexts).filter((name) => name !== 'gguf' && name !== 'fp8');
const targets = ['quark', 'brevitas', 'aihwkit', 'compressed-tensors', 'gptq', 'awq'];

/** Whether a loss is about a field: at its place, inside or around it, or with its name in the text. */
const isAbout = ({ where, message }, pointer, key) =>
  where === pointer ||
  where.startsWith(`${pointer}/`) ||
  (where !== '' && pointer.startsWith(`${where}/`)) ||
  message.includes(key);

/** {isSame, losses, config} of a converted config; null if the target can say nothing of it. */
async function conversion(prober, context, config, to) {
  let converted;
  try {
    converted = prober.quantizer.convertConfig(config, to);
  } catch (error) {
    if (error.code !== 'config-invalid') throw error;
    return null;
  }
  const [before, after] = [await prober.run(context, config), await prober.run(context, converted.config)];
  return { isSame: !after.error && after.outcome === before.outcome, error: after.error, ...converted };
}

/** What is lost unsaid: a text, or undefined. `variant`: of Prober.firstVariant. */
async function unsaid(prober, { context, config, without, pointer }, to, key) {
  const found = await conversion(prober, context, config, to);
  if (!found || found.isSame) return undefined;
  // Where the rest of the config is lost, too, its losses are enough; else the field has to be named, or to bring one.
  const rest = await conversion(prober, context, without, to);
  const known = new Set(rest?.losses.map((loss) => JSON.stringify(loss)));
  const isSaid = (loss) => isAbout(loss, pointer, key) || !known.has(JSON.stringify(loss));
  const losses = rest?.isSame ? found.losses.filter(isSaid) : found.losses;
  if (losses.length > 0) return undefined;
  const what = found.error ? `is refused: ${found.error.message}` : 'makes another result';
  return `${to} ${what}: ${JSON.stringify(config)} -> ${JSON.stringify(found.config)}`;
}

/** What conversions of a dialect's fields lose unsaid, a text each. The runs that `prober` has made already are not made again. */
export async function unsaidLosses(prober, dialect) {
  const problems = [];
  for (const field of fieldsOf(dialect))
    for (const value of valuesFor(dialect, field)) {
      const variant = await prober.firstVariant(dialect, field, value);
      if (!variant) continue;
      for (const to of targets.filter((name) => name !== dialect)) {
        const problem = await unsaid(prober, variant, to, field.path.at(-1));
        if (problem) problems.push(`${field.path.join('.')} = ${JSON.stringify(value)}: ${problem}`);
      }
    }
  return problems;
}
