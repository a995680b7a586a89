// What an own config differs in, and the way back; and what mends a config that does not fit.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { OutputFormat } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { layersKey } from '../../present/config_edits';
import { plural } from '../../present/units';
import { FailureMessage } from '../app/failure';
import { choice, chosenConfig, chosenPreset, planned } from '../configure/choice';
import { formatsOf } from '../configure/formats';
import { planOf } from '../configure/planner';
import { runtimes } from '../configure/runtimes';
import { cards, chooseCard } from '../curve/cards';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';

const keysOf = (value: unknown) => (typeof value === 'object' && value !== null ? Object.keys(value) : []);

/** Rules for single layers and kinds of layers, and exclusions that the preset does not have. */
function rulesOf(config: Record<string, unknown>): number {
  const usual = chosenPreset.value?.config ?? {};
  const excluded = (of: Record<string, unknown>) => (Array.isArray(of.exclude) ? of.exclude : []);
  const added = excluded(config).filter((pattern) => !excluded(usual).includes(pattern));
  return keysOf(config[layersKey(config)]).length + keysOf(config.layer_type_quant_config).length + added.length;
}

/** `custom (from int4_wo_128)`. */
export const customTitle = () => `custom (from ${choice.value.preset})`;

export function reset(): void {
  choice.value = { ...choice.value, configText: null };
}

export function CustomNote() {
  const { configText } = choice.value;
  if (configText === null) return null;
  const config = chosenConfig.value;
  const rules = config ? rulesOf(config) : 0;
  return (
    <p class="custom-note" role="status">
      <b>{customTitle()}</b>
      {rules > 0 && `, ${plural(rules, 'layer rule')}`}
      <button type="button" class="link" disabled={isBusy.value} onClick={reset}>
        reset
      </button>
    </p>
  );
}

interface OtherFormat {
  format: OutputFormat;
  title: string;
}

const mostOffered = 2;

/** Formats that hold the config as it is. */
async function otherFormats(): Promise<OtherFormat[]> {
  const model = opened.value?.model;
  const { preset, configText, format: own } = choice.value;
  const found: OtherFormat[] = [];
  for (const format of model ? formatsOf(model) : []) {
    if (!model || format === own || found.length === mostOffered) continue;
    try {
      await planOf(model, configText ?? preset, { format });
      found.push({ format, title: formats.outputs[format].title });
    } catch {} // not this one
  }
  return found;
}

export function Conflict() {
  const { failure } = planned.value;
  const { preset, configText } = choice.value;
  const others = useSignal<OtherFormat[]>([]);
  useEffect(() => {
    let isCurrent = failure !== null;
    others.value = [];
    if (isCurrent)
      void otherFormats().then((found) => {
        if (isCurrent) others.value = found;
      });
    return () => {
      isCurrent = false;
    };
  }, [failure, preset, configText]);
  if (!failure) return null;
  const card = cards.value.find(({ name }) => name === 'balanced') ?? cards.value[0];
  return (
    <div class="conflict">
      <FailureMessage failure={failure} />
      <div class="actions">
        {others.value.map(({ format, title }) => (
          <button
            key={format}
            type="button"
            class="button"
            onClick={() => {
              const runtime = runtimes.find((each) => each.formats(opened.value?.model).includes(format));
              if (runtime) choice.value = { ...choice.value, runtime: runtime.id, card: null, format };
            }}
          >
            Write {title} instead
          </button>
        ))}
        {configText !== null && (
          <button type="button" class="button" onClick={reset}>
            Back to {preset}
          </button>
        )}
        {configText === null && card && (
          <button type="button" class="button" onClick={() => chooseCard(card)}>
            Take {card.preset} instead
          </button>
        )}
      </div>
    </div>
  );
}
