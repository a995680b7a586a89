// Names of the files of a model that has several: `model-00001-of-00003.safetensors`, as transformers and llama.cpp write them, and
// with a variant `model-00001-of-00003.fp16.safetensors` or `model.fp16-00001-of-00003.safetensors`.

const numbers = /[-_.]?(\d{1,5})-of-(\d{1,5})(?=[-_.]|$)/;
const indexPattern = /\.safetensors\.index(\.[\w-]+)?\.json$/i;

/** Whether a file of this name is one part of several. */
export const isPartName = (name: string) => numbers.test(name);

/** Whether it is the first: number 1, or 0 for tools that count from 0. */
export const isFirstPart = (name: string) => Number(numbers.exec(name)?.[1] ?? 2) <= 1;

/** Whether the file lists the parts of a model in safetensors files. */
export const isIndexName = (name: string) => indexPattern.test(name);

/** The name that a model's parts and its index share: `model.fp16.safetensors` for `model-00001-of-00003.fp16.safetensors` and for
 * `model.safetensors.index.fp16.json`. */
export const wholeName = (name: string) =>
  isIndexName(name)
    ? name.replace(indexPattern, (_, variant: string | undefined) => `${variant ?? ''}.safetensors`)
    : name.replace(numbers, '');

/** Names that the index of a part may have, the usual one first: transformers puts a variant behind the numbers of the part, and then
 * behind `index`. */
export function indexNamesOf(part: string): string[] {
  const name = `${wholeName(part)}.index.json`;
  const variant = /-of-\d{1,5}\.([\w-]+)\.safetensors$/i.exec(part)?.[1];
  return variant ? [name.replace(`.${variant}.safetensors.index`, `.safetensors.index.${variant}`), name] : [name];
}

/** Whether it is an index that only names a variant, such as `model.safetensors.index.fp16.json`. */
export const isVariantIndex = (name: string) => isIndexName(name) && !/\.index\.json$/i.test(name);

/** `model.safetensors` for `model.fp16.safetensors`. */
export const withoutVariant = (whole: string) => whole.replace(/\.[\w-]+(\.[^.]+)$/, '$1');
