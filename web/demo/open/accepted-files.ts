// Which files the page offers to choose.
import { inputFormats } from 'wasmquant';
import { formats } from 'wasmquant/internal';

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
