// The open model in two lines.
import { useEffect, useRef } from 'preact/hooks';
import type { Model } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { bytesText, countText, elementCount, elementsText, plural } from '../../present/units';
import { Remarks } from '../app/diagnostics';
import { showStage } from '../app/stage';
import { opened } from '../open/opened';

const dtypeNames: Record<string, string> = { F32: 'float32', F16: 'float16', BF16: 'bfloat16', F64: 'float64' };

/** The dtype that most bytes have. */
function mainDtype({ tensors }: Model): string {
  const bytes = new Map<string, number>();
  for (const { dtype, shape } of tensors) bytes.set(dtype, (bytes.get(dtype) ?? 0) + elementCount(shape));
  const [most = ''] = [...bytes].sort((a, b) => b[1] - a[1])[0] ?? [];
  return dtypeNames[most] ?? most;
}

/** `Llama` of `LlamaForCausalLM`, or what a file says of itself. */
function family(model: Model): string | null {
  const { architectures } = model.config ?? {};
  const [name] = Array.isArray(architectures) ? (architectures as unknown[]) : [];
  if (typeof name === 'string') return name.replace(/(For[A-Z]\w+|Model)$/, '') || name;
  const architecture = model.metadata['general.architecture'];
  return typeof architecture === 'string' ? architecture : null;
}

export function ModelCard() {
  const heading = useRef<HTMLHeadingElement>(null);
  const now = opened.value;
  // What was clicked to open the model is gone.
  useEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, [now]);
  if (!now) return null;
  const { model, title } = now;
  const parameters = model.tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
  const format = formats.inputs[model.format];
  const facts = [
    family(model),
    `${elementsText(parameters)} parameters`,
    mainDtype(model),
    bytesText(model.bytes),
    model.tensors.length === 1 ? plural(1, 'tensor') : `${countText(model.tensors.length)} tensors`,
    format.title !== 'safetensors' && format.title,
  ].filter(Boolean);
  return (
    <section class="card model-card" aria-label="Model">
      <div class="model-head">
        <h1 ref={heading} tabIndex={-1} class="model-title" title={title}>
          {title}
        </h1>
        <button type="button" class="link" onClick={() => showStage('open')}>
          change
        </button>
      </div>
      <p class="fine model-facts">{facts.join(', ')}</p>
      {!model.config && format.hasSiblingFiles && (
        <p class="fine">The model has no config.json; the saved one contains only the quantization settings.</p>
      )}
      <Remarks items={model.diagnostics} />
    </section>
  );
}
