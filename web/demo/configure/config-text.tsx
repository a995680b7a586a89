// The config as JSON, to read or edit. An edit takes effect when typing pauses. The editor is loaded on first use;
// until then, or if that fails, a plain text field replaces it.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Diagnostic } from 'wasmquant';
import { quantizer } from '../app/engine';
import { explain, type Failure, FailureMessage } from '../app/failure';
import type { Editor } from '../editor/json-editor';
import { isBusy } from '../quality/job';
import { choice, chosenConfig, dialectOf, planned } from './choice';
import { Convert } from './convert';
import { loadSchemas, schemaOf } from './loaded-schemas';
import { SpecForm } from './spec-form';

const pauseMs = 400;

function check(text: string): Diagnostic[] {
  const found = quantizer.value?.checkConfig(text) ?? [];
  const ofModel = planned.value.plan?.diagnostics.filter(({ code }) => code === 'pattern-unused') ?? [];
  return choice.value.configText === text ? [...found, ...ofModel] : found;
}

/** Also for a config with errors, which a parser rejects. */
function likelyDialect(config: Record<string, unknown> | null): string {
  const own = typeof config?.dialect === 'string' ? config.dialect : 'quark';
  return (config && dialectOf(config)) || own;
}

interface Properties {
  text: string;
  disabled: boolean;
  onInput: (text: string) => void;
}

function CodeField({ text, disabled, onInput }: Properties) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useSignal<Editor | null>(null);
  const failure = useSignal<Failure | null>(null);
  const dialect = likelyDialect(chosenConfig.value);
  const input = useRef(onInput);
  input.current = onInput;
  /** Texts that came from the editor and are not sent back to it: it may be ahead. */
  const typed = useRef<string[]>([]);
  useEffect(() => {
    let isGone = false;
    const load = async () => {
      const [{ createEditor }] = await Promise.all([import('../editor/json-editor'), loadSchemas()]);
      if (isGone || !host.current) return;
      const label = 'Config as JSON';
      const options = { host: host.current, label, text, schema: schemaOf(dialect), check };
      editor.value = createEditor({
        ...options,
        onInput: (next) => {
          typed.current.push(next);
          input.current(next);
        },
      });
    };
    load().catch((error: unknown) => {
      if (!isGone) failure.value = explain(error, 'The editor could not be loaded; this is a plain field');
    });
    return () => {
      isGone = true;
      editor.value?.destroy();
    };
  }, []);
  useEffect(() => {
    const at = typed.current.lastIndexOf(text);
    if (at < 0) editor.value?.setText(text);
    typed.current = at < 0 ? [] : typed.current.slice(at + 1);
  }, [text, editor.value]);
  useEffect(() => editor.value?.setDisabled(disabled), [disabled, editor.value]);
  useEffect(() => editor.value?.recheck(), [planned.value, editor.value]);
  useEffect(() => editor.value?.setSchema(schemaOf(dialect)), [dialect, editor.value]);
  return (
    <>
      <div ref={host} class="code-field" />
      {failure.value && <FailureMessage failure={failure.value} />}
      {!editor.value && (
        <textarea
          aria-label="Config as JSON"
          rows={12}
          spellcheck={false}
          value={text}
          disabled={disabled}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </>
  );
}

export function ConfigText() {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { configText } = choice.value;
  const text = configText ?? JSON.stringify(chosenConfig.value ?? {}, null, 2);
  const disabled = !quantizer.value || isBusy.value;
  const edit = (value: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      choice.value = { ...choice.value, card: null, configText: value };
    }, pauseMs);
  };
  return (
    <div class="config-parts">
      <SpecForm disabled={disabled} />
      <Convert disabled={disabled} />
      <CodeField text={text} disabled={disabled} onInput={edit} />
    </div>
  );
}
