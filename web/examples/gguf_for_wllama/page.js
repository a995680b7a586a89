// Converts a Hugging Face folder to a GGUF file in the tab, and wllama (llama.cpp in WebAssembly) continues a text.
import { Wllama } from '@wllama/wllama';
import { createQuantizer } from 'wasmquant';

const element = (id) => document.getElementById(id);
const wllamaWasm = new URL('node_modules/@wllama/wllama/esm/wasm/wllama.wasm', location.href).href;

/** The GGUF file, in parts that a Blob takes without another copy. */
async function quantized(files) {
  const quantizer = await createQuantizer();
  const parts = [];
  try {
    const model = await quantizer.open(files); // weights, config.json, tokenizer.json
    const report = await quantizer.quantizeModel(model, 'q4_k_m', {
      target: new WritableStream({ write: (part) => void parts.push(part.slice()) }),
      onProgress: ({ bytesDone, bytesTotal }) => {
        element('progress').value = bytesDone / bytesTotal;
      },
    });
    await model.close();
    return { file: new Blob(parts), before: report.totals.bytesBefore };
  } finally {
    await quantizer.close();
  }
}

async function continuation(file, prompt) {
  const runtime = new Wllama({ default: wllamaWasm }, { suppressNativeLog: true });
  try {
    await runtime.loadModel([file], { n_ctx: 256, n_threads: 1 });
    const { choices } = await runtime.createCompletion({ prompt, max_tokens: 32, temperature: 0 });
    return choices[0].text;
  } finally {
    await runtime.exit();
  }
}

element('files').addEventListener('change', async ({ target: { files } }) => {
  try {
    element('text').textContent = '';
    const { file, before } = await quantized([...files]);
    element('status').textContent = `${before} to ${file.size} bytes; loading it`;
    const prompt = element('prompt').value;
    element('text').textContent = prompt + (await continuation(file, prompt));
    element('status').textContent = `${before} to ${file.size} bytes`;
  } catch (error) {
    element('status').textContent = error.message;
  }
});
