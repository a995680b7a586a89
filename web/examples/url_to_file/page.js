// Ranges of the URL are read as they are needed (the server must answer Range requests), and the output goes to browser
// storage as it is made: neither the model nor the output is ever in memory as a whole.
import { createQuantizer } from 'wasmquant';

const element = (id) => document.getElementById(id);
const loading = createQuantizer(); // people are faster: the form is ready before it

element('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    const quantizer = await loading;
    const model = await quantizer.open(new URL(element('url').value, location.href));
    const storage = await navigator.storage.getDirectory();
    const target = await storage.getDirectoryHandle('quantized', { create: true });
    const { files } = await quantizer.quantizeModel(model, 'int8', {
      target,
      overwrite: true,
      onProgress: ({ bytesDone, bytesTotal }) => {
        element('status').textContent = `${Math.round((100 * bytesDone) / bytesTotal)} %`;
      },
    });
    await model.close();
    const { name } = files.find((file) => file.name.endsWith('.safetensors'));
    const file = await (await target.getFileHandle(name)).getFile();
    element('status').textContent = `${file.size} bytes`;
    Object.assign(element('save'), { href: URL.createObjectURL(file), download: name, hidden: false });
  } catch (error) {
    element('status').textContent = error.message;
  }
});
