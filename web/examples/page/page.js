import { createQuantizer } from 'wasmquant';

const element = (id) => document.getElementById(id);
const loading = createQuantizer(); // people are faster: nothing below waits for it
loading.then((quantizer) => {
  for (const { name, title } of quantizer.presets()) element('preset').append(new Option(title, name));
  element('preset').value = 'int4_wo_128';
});

/** A target that keeps the finished weight file in memory, in parts that a Blob takes without another copy. */
function memoryTarget() {
  const files = new Map();
  const write = async (name) => {
    const parts = [];
    return new WritableStream({
      write: (part) => void parts.push(part.slice()),
      close: () => void files.set(name, new Blob(parts)),
    });
  };
  return { files, write };
}

element('file').addEventListener('change', async ({ target: { files } }) => {
  const [file] = files;
  if (!file) return;
  element('save').hidden = true;
  try {
    const quantizer = await loading;
    const model = await quantizer.open(file);
    const target = memoryTarget();
    const report = await quantizer.quantizeModel(model, element('preset').value, {
      target,
      onProgress: ({ bytesDone, bytesTotal }) => {
        element('progress').value = bytesDone / bytesTotal;
      },
    });
    await model.close();
    const [[name, blob]] = [...target.files].filter(([file]) => /\.(safetensors|gguf|onnx)$/.test(file));
    element('status').textContent = `${report.totals.bytesBefore} to ${blob.size} bytes`;
    Object.assign(element('save'), { href: URL.createObjectURL(blob), download: name, hidden: false });
  } catch (error) {
    element('status').textContent = error.message;
  }
});
