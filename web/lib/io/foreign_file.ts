// Files that are not for this library, recognised by their first bytes: what each is, and how to get to one that is.

import { failure, QuantizationError } from '../api/errors.js';
import { formats, inputFormatOf, inputFormats } from '../api/formats.js';
import type { FileSource } from './file_source.js';

interface Start {
  name: string;
  size: number;
  bytes: Uint8Array;
  /** The same bytes as ISO 8859-1. */
  text: string;
  /** The last bytes likewise, where a zip archive lists its entries. */
  end: string;
}

interface Kind {
  matches(file: Start): boolean;
  /** A noun with its article. */
  what: string;
  /** What to do, as a sentence. */
  how: string | ((file: Start) => string);
  /** Belongs to models, but holds no weights. */
  isCompanion?: boolean;
}

const ownMagic = /^(GGUF|\x93NUMPY)/;
const startBytes = 64 * 1024;
/** Of the header of a safetensors file, behind its length. */
const openingBrace = 0x7b;

const begins =
  (...bytes: number[]) =>
  (file: Start) =>
    bytes.every((byte, at) => file.bytes[at] === byte);
const beginsWith = (text: string) => (file: Start) => file.text.startsWith(text);
const isZip = beginsWith('PK\x03\x04');
const isZipWith = (entry: RegExp) => (file: Start) => isZip(file) && entry.test(file.text + file.end);
const isJson = (file: Start) => /^(\xef\xbb\xbf)?\s*[{[]/.test(file.text);
const isJsonWith = (part: RegExp) => (file: Start) => isJson(file) && part.test(file.text);

const fromPyTorch =
  'Use the .safetensors file of the model, or save it with save_pretrained() or safetensors.torch.save_file().';
const fromTensorFlow = 'Export the model to ONNX with tf2onnx, or use its .safetensors or ONNX file.';

/** The first that matches. */
const kinds: Kind[] = [
  {
    matches: beginsWith('version https://git-lfs.github.com/spec'),
    what: 'a Git LFS pointer, not the file itself',
    how: ({ text }) => {
      const size = /\nsize (\d+)/.exec(text)?.[1];
      return `${size ? `The file has ${size} bytes. ` : ''}Run "git lfs pull" in the folder, or download the file itself.`;
    },
  },
  {
    matches: ({ text }) => /^\s*(<!doctype html|<html)/i.test(text),
    what: 'a web page: the download returned an error or a login page',
    how: 'Download the file again; a gated model needs an account with access.',
  },
  {
    matches: ({ text }) => /^\s*<\?xml/.test(text) && /<net\b/.test(text),
    what: 'an OpenVINO model',
    how: 'Use the ONNX or .safetensors file that it was made from.',
  },
  {
    matches: ({ text }) => /^\s*<\?xml/.test(text),
    what: 'an XML document, such as the error message of a file server',
    how: 'Download the file again.',
  },
  {
    matches: isJsonWith(/"weightsManifest"|"format"\s*:\s*"(layers|graph)-model"/),
    what: 'the description of a TensorFlow.js model',
    how: 'Use the model it was converted from: a .safetensors or ONNX file, or a SavedModel exported with tf2onnx.',
  },
  {
    matches: ({ name }) => /(^|-)shard\d+of\d+(\.bin)?$/i.test(name),
    what: 'the weights of a TensorFlow.js model',
    how: 'Use the model it was converted from: a .safetensors or ONNX file, or a SavedModel exported with tf2onnx.',
  },
  {
    matches: ({ text }) => text.startsWith('TFL3', 4),
    what: 'a LiteRT (TensorFlow Lite) model',
    how: 'Use the model it was converted from. LiteRT has its own converter and quantizer.',
  },
  {
    matches: begins(0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a),
    what: 'an HDF5 file, as Keras writes them',
    how: fromTensorFlow,
  },
  { matches: isZipWith(/model\.weights\.h5/), what: 'a Keras model (.keras)', how: fromTensorFlow },
  {
    matches: isZipWith(/\/code\/|constants\.pkl/),
    what: 'a TorchScript program',
    how: `Export the model to ONNX, or get its weights in Python. ${fromPyTorch}`,
  },
  { matches: isZipWith(/data\.pkl/), what: 'a PyTorch checkpoint', how: fromPyTorch },
  {
    matches: isZipWith(/\.mlmodel|com\.apple\.CoreML/),
    what: 'a Core ML package',
    how: 'Use the model it was converted from. Core ML Tools have their own quantizer.',
  },
  {
    matches: (file) => isZip(file) && inputFormatOf(file.name) !== 'npy',
    what: 'a zip archive without arrays of NumPy',
    how: 'Unpack it and open the folder.',
  },
  {
    matches: begins(0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19),
    what: 'a PyTorch checkpoint of the old format',
    how: fromPyTorch,
  },
  {
    matches: ({ bytes }) => bytes[0] === 0x80 && bytes[1] !== undefined && bytes[1] >= 2 && bytes[1] <= 5,
    what: 'a Python pickle, which can run code when it is loaded',
    how: 'Save its arrays in Python with safetensors.numpy.save_file() or numpy.savez().',
  },
  {
    matches: begins(0xba, 0x16, 0x4f, 0x2f),
    what: 'a fastText model',
    how: 'Get its matrix in Python with get_input_matrix() and save that with numpy.save(); fastText has its own quantizer.',
  },
  {
    matches: ({ text }) => /^(lmgg|tjgg|fmgg|algg)/.test(text),
    what: 'a GGML file from before GGUF',
    how: 'Make a GGUF file of the original model.',
  },
  {
    matches: (file) => isCoreMl(file) || isJsonWith(/com\.apple\.CoreML/)(file),
    what: 'a Core ML model',
    how: 'Use the model it was converted from. Core ML Tools have their own quantizer.',
  },
  {
    matches: ({ name, bytes, text }) =>
      /(^|\/)saved_model\.pb$/.test(name) || (bytes[0] === 0x08 && /serving_default|saved_model/.test(text)),
    what: 'a TensorFlow SavedModel',
    how: fromTensorFlow,
  },
  { matches: ({ name }) => /\.pb$/i.test(name), what: 'a graph of TensorFlow', how: fromTensorFlow },
  {
    matches: ({ name }) => /\.msgpack$/i.test(name),
    what: 'a Flax checkpoint',
    how: 'Use the .safetensors file of the model, or load it in Python with from_flax=True and save it again.',
  },
  { matches: begins(0x00, 0x61, 0x73, 0x6d), what: 'a WebAssembly module', how: 'Open the weights of a model.' },
  {
    matches: (file) =>
      [
        begins(0x1f, 0x8b),
        beginsWith("7z\xbc\xaf'"),
        beginsWith('Rar!'),
        beginsWith('\xfd7zXZ'),
        begins(0x28, 0xb5, 0x2f, 0xfd),
        beginsWith('BZh'),
      ].some((matches) => matches(file)) || file.text.startsWith('ustar', 257),
    what: 'an archive',
    how: 'Unpack it and open the folder.',
  },
  {
    matches: (file) => [beginsWith('%PDF'), beginsWith('\x89PNG'), begins(0xff, 0xd8, 0xff)].some((is) => is(file)),
    what: 'a document or a picture',
    how: 'Open the weights of a model.',
  },
  {
    matches: ({ bytes }) => bytes.length > 16 && bytes.every((byte) => byte === 0),
    what: 'a file of zeros: its download did not finish',
    how: 'Download it again.',
  },
  {
    matches: isJsonWith(/"(added_tokens|pre_tokenizer|tokenizer_class)"/),
    what: 'the tokenizer of a model',
    how: 'Open the folder of the model, or choose its weights too.',
    isCompanion: true,
  },
  {
    matches: isJsonWith(/"(model_type|architectures)"/),
    what: 'the config.json of a model',
    how: 'Open the folder of the model, or choose its weights too.',
    isCompanion: true,
  },
  {
    matches: isJson,
    what: 'a JSON file',
    how: 'Open the folder of the model, or choose its weights too.',
    isCompanion: true,
  },
  {
    matches: ({ text, size }) => size > 0 && /^[\t\n\r\x20-\x7e\x80-\xff]*$/.test(text) && /[a-z ]{8}/i.test(text),
    what: 'a text file',
    how: 'Open the weights of a model.',
    isCompanion: true,
  },
];

/** specificationVersion, then a message; ONNX has a version, then the text of its producer. */
function isCoreMl({ name, bytes }: Start): boolean {
  const [tag, version, next, length, inner] = bytes;
  if (/\.mlmodel$/i.test(name)) return true;
  return tag === 0x08 && version !== undefined && version < 32 && next === 0x12 && (length ?? 0) > 1 && inner === 0x0a;
}

async function startOf(file: FileSource): Promise<Start> {
  const length = Math.min(file.size, startBytes);
  const bytes = await file.read(0, length);
  const text = latin1(bytes);
  const end = text.startsWith('PK') ? latin1(await file.read(file.size - length, length)) : '';
  return { name: file.name, size: file.size, bytes, text, end };
}

const latin1 = (bytes: Uint8Array) => new TextDecoder('latin1').decode(bytes);

/** `safetensors, GGUF or ONNX`. */
function readable(): string {
  const titles = inputFormats.map((name) => formats.inputs[name].title);
  return `${titles.slice(0, -1).join(', ')} or ${titles.at(-1)}`;
}

/** What a file is that is not for this library; null if it may be, or is unknown. */
async function foreignKind(file: FileSource): Promise<{ detail: string; isCompanion: boolean } | null> {
  const start = await startOf(file);
  if (ownMagic.test(start.text) || (inputFormatOf(file.name) === 'safetensors' && start.bytes[8] === openingBrace))
    return null;
  const kind = kinds.find(({ matches }) => matches(start));
  if (kind) {
    const how = typeof kind.how === 'string' ? kind.how : kind.how(start);
    return { detail: `this is ${kind.what}. ${how}`, isCompanion: kind.isCompanion === true };
  }
  return null;
}

/** Whether the reader of safetensors, which unknown files get, found no header: another text would be of its contents. */
const hasNoHeader = (refused: unknown) =>
  refused instanceof QuantizationError &&
  (refused.code === 'file-too-large' || refused.code === 'file-truncated') &&
  refused.where?.endsWith('byte 0') === true;

/** The error for a file that its reader refused: what it is instead, or the reader's own. */
export async function foreignFailure(file: FileSource, refused: unknown): Promise<unknown> {
  if (file.size === 0) {
    const detail = 'the file has 0 bytes: its download did not finish. Download it again';
    return failure('file-truncated', `${file.name}: byte 0`, detail, refused);
  }
  // The reader of NumPy's archives names the entry.
  const isNamed = refused instanceof QuantizationError && refused.code === 'format-unknown';
  const kind = isNamed && inputFormatOf(file.name) === 'npy' ? null : await foreignKind(file);
  if (kind) return failure('format-unknown', file.name, kind.detail, refused);
  const first = await file.read(0, Math.min(file.size, 9));
  if (file.size < 9 || first[8] === openingBrace || ownMagic.test(latin1(first)) || !hasNoHeader(refused))
    return refused;
  const shown = [...first.subarray(0, 4)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  const detail = `begins with the bytes ${shown}, as no known format does. Open a file of ${readable()}.`;
  return failure('format-unknown', file.name, detail, refused);
}

/** The error for files none of which are weights: the first that is a model of another kind, else `otherwise`. */
export async function foreignAmong(
  names: readonly string[],
  open: (name: string) => Promise<FileSource | null>,
  otherwise: QuantizationError,
): Promise<QuantizationError> {
  let companion: QuantizationError | null = null;
  for (const name of names.slice(0, 16)) {
    const file = await open(name);
    if (!file) continue;
    const kind = await foreignKind(file).finally(() => file.close());
    if (!kind) continue;
    const found = failure('format-unknown', name, kind.detail);
    if (!kind.isCompanion) return found;
    companion ??= found;
  }
  return names.length === 1 && companion ? companion : otherwise;
}
