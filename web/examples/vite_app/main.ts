// Vite finds the worker and the module by itself; nothing is configured. The target here only counts: give a
// FileSystemFileHandle of showSaveFilePicker, or a folder of browser storage, to keep the file.
import { createQuantizer, isQuantizationError } from 'wasmquant';

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const input = element<HTMLInputElement>('file');
const cancel = element<HTMLButtonElement>('cancel');
const status = element('status');

async function run(file: File, signal: AbortSignal): Promise<void> {
  const quantizer = await createQuantizer();
  try {
    const model = await quantizer.open(file);
    const { totals, tensors } = await quantizer.quantizeModel(model, 'uint4_wo_32', {
      target: { write: async () => new WritableStream<Uint8Array>() },
      signal,
      onProgress: ({ tensor, index, count }) => {
        status.textContent = `${index} of ${count} ${tensor ?? ''}`;
      },
    });
    await model.close();
    status.textContent = `${totals.quantized} tensors, ${totals.bitsPerWeight.toFixed(2)} bits per weight`;
    for (const { name, error } of tensors)
      if (error)
        element('layers').append(
          Object.assign(document.createElement('li'), { textContent: `${name}: ${error.sqnrDb.toFixed(1)} dB` }),
        );
  } finally {
    await quantizer.close();
  }
}

input.addEventListener('change', () => {
  const file = input.files?.[0];
  if (!file) return;
  const controller = new AbortController();
  cancel.disabled = false;
  cancel.onclick = () => controller.abort();
  run(file, controller.signal)
    .catch((error: unknown) => {
      if (controller.signal.aborted) status.textContent = 'cancelled';
      else if (isQuantizationError(error)) status.textContent = error.message;
      else throw error;
    })
    .finally(() => {
      cancel.disabled = true;
    });
});
