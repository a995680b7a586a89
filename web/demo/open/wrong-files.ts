// Files that are not models this page can open, and what to do about each kind.
import { formats, inputFormats } from 'wasmquant';

const inputs = inputFormats.map((name) => formats.inputs[name]);
/** As a file input accepts them: weights, files that hold their values, and files that belong to them. */
export const acceptedFiles = [
  ...inputs.flatMap(({ extensions, dataExtensions }) => [...extensions, ...dataExtensions]),
  ...['.json', '.txt', '.model', '.jinja'],
].join(',');
/** `.safetensors, .gguf, .onnx or .npy` */
export const extensionsText = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(
  inputs.flatMap(({ extensions }) => extensions.slice(0, 1)),
);

interface Kind {
  pattern: RegExp;
  /** After "x is". */
  what: string;
}

const kinds: Kind[] = [
  {
    pattern: /\.(bin|pt|pth|ckpt|pkl)$/i,
    what: 'a PyTorch pickle, which can run code when it is loaded. Use the model’s .safetensors file, which most have, or save it again with save_pretrained(…, safe_serialization=True).',
  },
  { pattern: /\.(h5|keras|pb)$/i, what: 'a TensorFlow or Keras model. Export it to ONNX with tf2onnx first.' },
  { pattern: /\.tflite$/i, what: 'a LiteRT model, which is quantized with its own converter.' },
  { pattern: /\.(zip|tar|gz|7z|rar|xz)$/i, what: 'an archive. Unpack it and open the folder.' },
  { pattern: /\.(onnx_data|data)$/i, what: 'the weights of an ONNX model. Open the .onnx file together with it.' },
  {
    pattern: /\.index\.json$/i,
    what: 'the list of a model’s shards. Choose the .safetensors files it names together with it, or drop the whole folder.',
  },
];

/** For a selection without a weight file. */
export function withoutWeights(files: File[]): string {
  const names = files.slice(0, 3).map(({ name }) => name);
  const list = `${names.join(', ')}${files.length > 3 ? ', …' : ''}`;
  const known = files.flatMap(({ name }) => {
    const kind = kinds.find(({ pattern }) => pattern.test(name));
    return kind ? [`${name} is ${kind.what}`] : [];
  });
  return [`No ${extensionsText} file among ${list}.`, ...known.slice(0, 1)].join(' ');
}

/** Longest file that can be a pointer or an error page instead of weights. */
const headBytes = 512;

/** What files with the name of a weight file often are instead; null if it looks like weights. */
export async function notWeights(file: File): Promise<string | null> {
  if (file.size === 0) return `${file.name} is empty: its download did not finish.`;
  const head = await file.slice(0, headBytes).text();
  if (head.startsWith('version https://git-lfs.github.com'))
    return `${file.name} is a Git LFS pointer, not the weights. Fetch them with “git lfs pull”, or download the file itself.`;
  if (/^\s*<(!doctype|html)/i.test(head))
    return `${file.name} is a web page, not the weights: the download returned an error or a login page.`;
  return null;
}
