// A picture or a sound as an input of an ONNX model.
import type { Feed, ModelInput, TensorClass } from 'wasmquant/onnxruntime';

export type Kind = 'picture' | 'sound';

/** The input that takes the picture or sound; the others are filled. */
export interface Place {
  kind: Kind;
  input: ModelInput;
  others: ModelInput[];
}

/** What values of 0 to 255 become. */
export const ranges = {
  unit: { title: '0 to 1', of: (value: number) => value / 255 },
  signed: { title: '−1 to 1', of: (value: number) => value / 127.5 - 1 },
  imagenet: {
    title: 'ImageNet’s mean and deviation',
    of: (value: number, channel: number) =>
      (value / 255 - ([0.485, 0.456, 0.406][channel] ?? 0.45)) / ([0.229, 0.224, 0.225][channel] ?? 0.226),
  },
  bytes: { title: '0 to 255', of: (value: number) => value },
} as const;
export type RangeName = keyof typeof ranges;

const isChannels = (size: number | string | null | undefined) => size === 1 || size === 3;

/** Of a picture's shape: channels first or last; null: no picture. */
function channelAxis(shape: ModelInput['shape']): 1 | 3 | null {
  if (shape?.length !== 4) return null;
  if (isChannels(shape[1])) return 1;
  if (isChannels(shape[3])) return 3;
  return typeof shape[1] === 'number' || typeof shape[3] === 'number' ? null : 1;
}

const soundNames = /audio|wav|sound|speech|signal|pcm|samples|^input$|^x$/i;

const isSound = ({ name, type, shape }: ModelInput) =>
  type === 'float32' && shape !== null && shape.length > 0 && shape.length < 4 && soundNames.test(name);

const fillable = /^(float(32|64)|u?int(8|16|32|64)|bool)$/;

/** Null: the model takes neither. */
export function placeOf(inputs: readonly ModelInput[]): Place | null {
  const needed = inputs.filter(({ optional }) => !optional);
  const picture = needed.find(
    ({ type, shape }) => (type === 'float32' || type === 'uint8') && channelAxis(shape) !== null,
  );
  const input = picture ?? needed.find(isSound);
  if (!input) return null;
  const others = needed.filter((other) => other !== input);
  if (others.some(({ type }) => !fillable.test(type))) return null;
  return { kind: picture ? 'picture' : 'sound', input, others };
}

const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  bool: Uint8Array,
} as const;

const rate = 16_000;

/** Zeros: states begin so. A rate is that of the sound. */
function filled(Tensor: TensorClass, { name, type, shape }: ModelInput): unknown {
  const dims = (shape ?? []).map((size) => (typeof size === 'number' ? size : 1));
  const count = dims.reduce((product, size) => product * size, 1);
  const value = /^sr$|rate/i.test(name) ? rate : 0;
  if (/64$/.test(type) && type !== 'float64') {
    const Type = type === 'int64' ? BigInt64Array : BigUint64Array;
    return new Tensor(type, new Type(count).fill(BigInt(value)), dims);
  }
  return new Tensor(type, new arrays[type as keyof typeof arrays](count).fill(value), dims);
}

/** Sides that a model leaves open: a multiple of 32, as most networks need. */
const openSide = 320;

async function pictureTensor(Tensor: TensorClass, { input }: Place, file: Blob, range: RangeName): Promise<unknown> {
  const { type } = input;
  const shape = input.shape ?? [];
  const isFirst = channelAxis(shape) === 1;
  const sideOf = (axis: number) => (typeof shape[axis] === 'number' ? (shape[axis] as number) : openSide);
  const [height, width] = isFirst ? [sideOf(2), sideOf(3)] : [sideOf(1), sideOf(2)];
  const channels = shape[isFirst ? 1 : 3] === 1 ? 1 : 3;
  const bitmap = await createImageBitmap(file);
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  if (!context) throw new Error('This browser cannot read pictures.');
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  const values =
    type === 'uint8' ? new Uint8Array(channels * height * width) : new Float32Array(channels * height * width);
  const { of } = ranges[type === 'uint8' ? 'bytes' : range];
  for (let pixel = 0; pixel < width * height; ++pixel)
    for (let channel = 0; channel < channels; ++channel) {
      const at = 4 * pixel;
      const [red = 0, green = 0, blue = 0] = data.subarray(at, at + 3);
      const byte = channels === 1 ? 0.299 * red + 0.587 * green + 0.114 * blue : (data[at + channel] ?? 0);
      values[isFirst ? channel * width * height + pixel : channels * pixel + channel] = of(byte, channel);
    }
  return new Tensor(type, values, isFirst ? [1, channels, height, width] : [1, height, width, channels]);
}

/** Where a model leaves it open: so many seconds at most. */
const mostSeconds = 10;

async function soundTensor(Tensor: TensorClass, { input }: Place, file: Blob): Promise<unknown> {
  const decoded = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer());
  const shape = input.shape ?? [null];
  const last = shape.at(-1);
  const length = typeof last === 'number' ? last : Math.min(decoded.length, mostSeconds * rate);
  const values = new Float32Array(length);
  for (let channel = 0; channel < decoded.numberOfChannels; ++channel)
    for (const [i, value] of decoded.getChannelData(channel).subarray(0, length).entries())
      values[i] = (values[i] ?? 0) + value / decoded.numberOfChannels;
  return new Tensor('float32', values, [...shape.slice(0, -1).map(() => 1), length]);
}

/** Errors: those of the browser for files that it cannot decode. */
export async function feedOf(Tensor: TensorClass, place: Place, file: Blob, range: RangeName): Promise<Feed> {
  const own = place.kind === 'picture' ? pictureTensor(Tensor, place, file, range) : soundTensor(Tensor, place, file);
  const feed: Feed = { [place.input.name]: await own };
  for (const other of place.others) feed[other.name] = filled(Tensor, other);
  return feed;
}
