// What people drop on the page that is not quite a model. Each row: how it comes to the page, what it has in it, and what is said.
// `refused`: a sentence, and the page still takes another file. `opens`: a model, whose run ends in files or in a sentence.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { twoLayers } from '../node/onnx/model.mjs';
import { npyFile, npzFile } from '../node/sources/npy_file.mjs';
import { sampleFolder, someWeights } from './browser.mjs';

const latin1 = (text) => Buffer.from(text, 'latin1');
const bytes = (...list) => Buffer.from(list);
const sampleFile = (name) => readFileSync(join(sampleFolder, name));
const noise = (count) => Buffer.from(someWeights(count / 4).buffer);

function safetensors(tensors, metadata) {
  const header = metadata ? { __metadata__: metadata } : {};
  const parts = [];
  let end = 0;
  for (const [name, dtype, shape, data] of tensors) {
    header[name] = { dtype, shape, data_offsets: [end, end + data.byteLength] };
    parts.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    end += data.byteLength;
  }
  return framed(JSON.stringify(header), ...parts);
}

/** A header's text behind its length, and what follows. */
function framed(text, ...parts) {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  return Buffer.concat([length, Buffer.from(text), ...parts]);
}

const matrix = (name, rows = 64, columns = 64) => [name, 'F32', [rows, columns], someWeights(rows * columns)];
const small = () => safetensors([matrix('proj.weight')]);

const onnxOf = (location) => Buffer.from(twoLayers(location ? { location } : {}).bytes);

const lfs = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 269060552\n';
const llama = sampleFile('config.json').toString();

/** A GGUF file with keys and no tensors; values: a text, or a number of 16 bits. */
function gguf({ version = 3, keys = { 'general.architecture': 'llama' }, tensors = 0 } = {}) {
  const number = (width, of) => {
    const field = Buffer.alloc(8);
    field.writeBigUInt64LE(BigInt(of));
    return field.subarray(0, width);
  };
  const text = (of) => Buffer.concat([number(8, Buffer.byteLength(of)), Buffer.from(of)]);
  const entries = Object.entries(keys).map(([key, value]) => {
    const typed = typeof value === 'string' ? [number(4, 8), text(value)] : [number(4, 2), number(2, value)];
    return Buffer.concat([text(key), ...typed]);
  });
  const counts = [number(8, tensors), number(8, entries.length)];
  return Buffer.concat([latin1('GGUF'), number(4, version), ...counts, ...entries]);
}

const one = (name, content, expected) => ({ title: name, files: { [name]: content }, ...expected });
const folder = (title, files, expected) => ({ title, folder: title, files, ...expected });
const address = (text, expected) => ({ title: text, address: text, ...expected });
const refused = (says) => ({ ends: 'refused', says });
const opens = (says) => ({ ends: 'opens', says });

export const awkward = [
  // Broken off, empty, made of nothing.
  one('half.safetensors', sampleFile('model.safetensors').subarray(0, 300_000), refused(/bytes are missing/)),
  one('only-header.safetensors', sampleFile('model.safetensors').subarray(0, 2000), refused(/download/i)),
  one('empty.safetensors', Buffer.alloc(0), refused(/0 bytes/)),
  one('empty.gguf', Buffer.alloc(0), refused(/0 bytes/)),
  one('empty.onnx', Buffer.alloc(0), refused(/0 bytes/)),
  one('one-byte.safetensors', bytes(7), refused(/1 byte/)),
  one('zeros.safetensors', Buffer.alloc(100_000), refused(/zeros/)),
  one('noise.onnx', noise(8192), refused(/is this an ONNX model/)),
  one('half.gguf', gguf({ tensors: 5 }), refused(/[Dd]ownload/)),
  one('half.onnx', onnxOf().subarray(0, 9000), refused(/missing/)),
  // Headers that lie.
  one('huge-header.safetensors', Buffer.concat([bytes(0, 0, 0, 0, 0, 1, 0, 0), Buffer.alloc(64, 0x7b)]), refused(/./)),
  one('no-json.safetensors', framed('{"a": not json', noise(64)), refused(/./)),
  one(
    'two-of-a-name.safetensors',
    framed(
      '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
      noise(8),
    ),
    refused(/twice|two/),
  ),
  one(
    'overlap.safetensors',
    framed(
      '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}',
      noise(12),
    ),
    refused(/./),
  ),
  one('old.gguf', gguf({ version: 1 }), refused(/version 1/)),
  one('big-endian.gguf', Buffer.concat([latin1('GGUF'), bytes(0, 0, 0, 3), Buffer.alloc(64)]), refused(/./)),
  // Other kinds of files.
  one('pytorch_model.bin', Buffer.concat([bytes(0x80, 2, 0x7d), noise(400)]), refused(/pickle/)),
  one('model.pt', npzFile([{ name: 'archive/data.pkl', bytes: noise(64) }]), refused(/PyTorch checkpoint/)),
  one('model.json', '{"format": "layers-model", "weightsManifest": []}', refused(/TensorFlow\.js/)),
  one('model.tflite', Buffer.concat([bytes(0x1c, 0, 0, 0), latin1('TFL3'), noise(400)]), refused(/LiteRT/)),
  one('model.h5', Buffer.concat([latin1('\x89HDF\r\n\x1a\n'), noise(400)]), refused(/HDF5/)),
  one('model.keras', npzFile([{ name: 'model.weights.h5', bytes: noise(64) }]), refused(/Keras/)),
  one('model.zip', npzFile([{ name: 'model.safetensors', bytes: small() }]), refused(/Unpack/)),
  one('model.tar.gz', Buffer.concat([bytes(0x1f, 0x8b, 8), noise(400)]), refused(/archive/)),
  one('photo.png', Buffer.concat([latin1('\x89PNG\r\n\x1a\n'), noise(400)]), refused(/./)),
  one('README.md', '# My model\n\nA small model.\n', refused(/./)),
  one('config.json', llama, refused(/choose its weights/)),
  one('tokenizer.json', sampleFile('tokenizer.json'), refused(/weights/)),
  one('pointer.safetensors', lfs, refused(/Git LFS.*git lfs pull/)),
  one('login.safetensors', '<!DOCTYPE html><title>Sign in</title>', refused(/web page/)),
  one('denied.safetensors', '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', refused(/XML/)),
  one('objects.npy', npyFile('|O', [4], new Uint8Array(32)), refused(/./)),
  // Folders.
  folder('only-words', { 'README.md': 'A model.', 'config.json': llama }, refused(/weight/)),
  folder('pointers', { 'config.json': llama, 'model.safetensors': lfs }, refused(/Git LFS/)),
  folder(
    'two-models',
    { 'a.safetensors': small(), 'b.safetensors': small() },
    refused(/a\.safetensors.*b\.safetensors/),
  ),
  folder(
    'a-shard-is-missing',
    {
      'config.json': llama,
      'model-00001-of-00002.safetensors': small(),
      'model.safetensors.index.json': JSON.stringify({
        weight_map: {
          'proj.weight': 'model-00001-of-00002.safetensors',
          'head.weight': 'model-00002-of-00002.safetensors',
        },
      }),
    },
    refused(/model-00002-of-00002\.safetensors.*missing/),
  ),
  folder(
    'saved-model',
    { 'saved_model.pb': Buffer.concat([bytes(8, 1), latin1('serving_default')]) },
    refused(/SavedModel/),
  ),
  folder(
    'broken-config',
    { 'config.json': '{"model_type": "llama",', 'model.safetensors': small() },
    refused(/Byte 23.*Fix the text/),
  ),
  one('model-00002-of-00003.safetensors', small(), refused(/./)),
  one('part-00001-of-00002.gguf', gguf({ keys: { 'split.no': 0, 'split.count': 2 } }), refused(/./)),
  one('external.onnx', onnxOf('weights.bin'), refused(/weights\.bin.*missing/)),
  { title: 'two gguf files', files: { 'a.gguf': gguf(), 'b.gguf': gguf() }, ...refused(/./) },
  { title: 'weights and a picture', files: { 'a.safetensors': small(), 'a.png': noise(400) }, ...opens(/./) },
  folder(
    'with-everything',
    {
      ...{
        'config.json': llama,
        'model.safetensors': small(),
        'pytorch_model.bin': noise(400),
        'tf_model.h5': noise(400),
      },
      ...{ 'logo.png': noise(400), '.gitattributes': 'x', 'flax_model.msgpack': noise(400), 'README.md': 'A model.' },
    },
    opens(/1 tensor/),
  ),
  // Models that are odd.
  one('named-wrong.gguf', small(), opens(/./)),
  one('no-ending', small(), opens(/./)),
  one('<img src=x onerror=alert(1)>.safetensors', small(), opens(/<img/)),
  one('模型 модель 🦙\u202Efdp.safetensors', small(), opens(/模型/)),
  one(`${'long-'.repeat(45)}.safetensors`, small(), opens(/long-long/)),
  one(
    'odd-tensors.safetensors',
    safetensors([
      matrix('<b>bold</b>.weight'),
      matrix('слой.0.weight'),
      ['scalar', 'F32', [], someWeights(1)],
      ['none.weight', 'F32', [0, 64], new Float32Array()],
    ]),
    opens(/./),
  ),
  one('whole-numbers.safetensors', safetensors([['ids', 'I64', [64, 64], new BigInt64Array(4096)]]), opens(/./)),
  one(
    'not-numbers.safetensors',
    safetensors([['proj.weight', 'F32', [64, 64], new Float32Array(4096).fill(Number.NaN)]]),
    opens(/./),
  ),
  folder('no-config', { 'model.safetensors': small(), 'notes.txt': 'x' }, opens(/no config\.json/)),
  folder(
    'unknown-family',
    { 'config.json': '{"architectures": ["NoSuchModel"], "model_type": "no_such"}', 'model.safetensors': small() },
    opens(/NoSuch/),
  ),
  folder(
    'adapter',
    {
      'adapter_config.json': '{"peft_type": "LORA", "r": 8}',
      'adapter_model.safetensors': safetensors([
        matrix('base_model.model.q_proj.lora_A.weight', 8, 64),
        matrix('base_model.model.q_proj.lora_B.weight', 64, 8),
      ]),
    },
    opens(/./),
  ),
  // Addresses.
  address('not an address', refused(/must end in|not a/)),
  address('sample/nothing-here.safetensors', refused(/404/)),
  address('index.html', refused(/must end in/)),
];
