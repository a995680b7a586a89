// The weights' spec as a form. Fields and values come from the JSON Schema; only values that the library accepts
// together with the other fields are offered.
import { useRef } from 'preact/hooks';
import type { QuantizationSpec } from 'wasmquant';
import { quantizer } from '../app/engine';
import { schemasAt } from '../editor/schema-walk';
import { chosenConfig, useConfig } from './choice';
import { loadedSchemas } from './loaded-schemas';

type Value = string | number | boolean | null;
type Key = 'dtype' | 'qscheme' | 'group_size' | 'symmetric' | 'round_method' | 'scale_format' | 'observer_cls';

const titles: Record<Key, string> = {
  dtype: 'Dtype',
  qscheme: 'One scale',
  group_size: 'Group size',
  symmetric: 'Zero points',
  round_method: 'Rounding',
  scale_format: 'Scales are',
  observer_cls: 'Range by',
};

const words: Record<string, string> = {
  per_tensor: 'per tensor',
  per_channel: 'per channel',
  per_group: 'per group',
  per_block: 'per block',
  true: 'none (symmetric)',
  false: 'yes (asymmetric)',
  half_even: 'half to even',
  round: 'half up',
  floor: 'down',
  half_away: 'half away from zero',
};

const groupSizes = [16, 32, 64, 128, 256];

/** Other fields that a value requires. */
function completed(spec: QuantizationSpec): QuantizationSpec {
  const { group_size, block_size, ch_axis, ...rest } = spec;
  if (spec.qscheme === 'per_group') return { ...rest, group_size: group_size ?? 128, ch_axis: -1 };
  if (spec.qscheme === 'per_block') return { ...rest, block_size: block_size ?? [128, 128] };
  if (spec.qscheme === 'per_channel') return { ...rest, ch_axis: ch_axis === -1 ? 0 : (ch_axis ?? 0) };
  return rest;
}

/** The spec with another value; fields that do not fit it are dropped, last named first. */
function withValue(spec: QuantizationSpec, key: Key, value: Value): QuantizationSpec | null {
  const { [key]: _, ...rest } = spec;
  const wanted = completed(value === null ? (rest as QuantizationSpec) : { ...spec, [key]: value });
  if (fits(wanted)) return wanted;
  const fallbacks: (keyof QuantizationSpec)[] = [
    'scale_sign',
    'scale_refit',
    'observer_cls',
    'scale_format',
    'symmetric',
    'round_method',
  ];
  const kept = Object.entries(wanted);
  for (let dropped = 1; dropped <= fallbacks.length; ++dropped) {
    const without = fallbacks.slice(0, dropped).filter((name) => name !== key);
    const lesser = Object.fromEntries(kept.filter(([name]) => !without.includes(name as never))) as unknown;
    if (fits(lesser as QuantizationSpec)) return lesser as QuantizationSpec;
  }
  return null;
}

/** Whether the library takes the spec and ignores nothing of it. */
function fits(weight: QuantizationSpec): boolean {
  const found = quantizer.value?.checkConfig({ global_quant_config: { weight } }) ?? [];
  return !found.some(({ severity, code }) => severity === 'error' || code === 'key-ignored');
}

function candidates(key: Key): Value[] {
  if (key === 'group_size') return groupSizes;
  if (key === 'symmetric') return [true, false];
  const root = loadedSchemas.value?.quark;
  const path = ['global_quant_config', 'weight', key];
  const values = root ? schemasAt(root, path).flatMap((schema) => (schema.enum ?? []) as Value[]) : [];
  return [...new Set(values)].filter((value) => value !== null);
}

/** The weights' spec of a config in Quark's dialect, if it has a single one. */
function specOf(config: Record<string, unknown> | null): QuantizationSpec | null {
  const weight = (config?.global_quant_config as { weight?: QuantizationSpec } | null | undefined)?.weight;
  const isSingle = weight && !Array.isArray(weight) && typeof weight.dtype === 'string' && !('bit_width' in weight);
  return isSingle && config?.dialect === undefined ? weight : null;
}

function Field({ name, spec, disabled }: { name: Key; spec: QuantizationSpec; disabled: boolean }) {
  const current = spec[name] ?? null;
  const offered = candidates(name).filter((value) => value === current || withValue(spec, name, value) !== null);
  if (offered.length < 2 && current === null) return null;
  const isOptional = name !== 'dtype' && name !== 'group_size';
  return (
    <div class="spec-field">
      <label class="fine" for={`spec-${name}`}>
        {titles[name]}
      </label>
      <select
        id={`spec-${name}`}
        value={JSON.stringify(current)}
        disabled={disabled}
        onChange={(event) => {
          const value = JSON.parse(event.currentTarget.value) as Value;
          const weight = withValue(spec, name, value);
          const config = chosenConfig.value;
          const global = config?.global_quant_config as object;
          if (weight) useConfig({ ...config, global_quant_config: { ...global, weight } });
        }}
      >
        {(isOptional || current === null) && <option value="null">usual</option>}
        {offered.map((value) => (
          <option key={String(value)} value={JSON.stringify(value)}>
            {words[String(value)] ?? String(value).replace(/Observer$/, '')}
          </option>
        ))}
      </select>
    </div>
  );
}

export function SpecForm({ disabled }: { disabled: boolean }) {
  const last = useRef<QuantizationSpec | null>(null);
  const config = chosenConfig.value;
  // While the text is not valid JSON the form keeps its state, so that nothing jumps.
  const spec = config === null ? last.current : specOf(config);
  last.current = spec;
  if (!spec || !loadedSchemas.value) return null;
  const fields: Key[] = ['dtype', 'qscheme', 'symmetric', 'round_method', 'scale_format', 'observer_cls'];
  if (spec.qscheme === 'per_group') fields.splice(2, 0, 'group_size');
  return (
    <fieldset class="spec-form">
      <legend class="visually-hidden">Weights</legend>
      {fields.map((name) => (
        <Field key={name} name={name} spec={spec} disabled={disabled || config === null} />
      ))}
    </fieldset>
  );
}
