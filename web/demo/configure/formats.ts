// The formats that this page offers, described, and which presets fit which.
import type { Model, OutputFormat, Preset } from 'wasmquant';
import { isRecipe } from '../../present/config_edits';

const formats: { name: OutputFormat; title: string; description: string }[] = [
  {
    name: 'compressed-tensors',
    title: 'compressed-tensors',
    description: 'Packed weights for vLLM and transformers.',
  },
  {
    name: 'gguf',
    title: 'GGUF',
    description: 'One file for llama.cpp, ollama and wllama, with the tokenizer inside.',
  },
  {
    name: 'onnx',
    title: 'ONNX',
    description: 'The same graph with quantized weights, for ONNX Runtime and transformers.js.',
  },
  { name: 'quark', title: 'Quark', description: 'Packed weights in the export format of AMD Quark.' },
  {
    name: 'fake-quantized',
    title: 'Fake-quantized',
    description: 'Quantized, then dequantized to the original dtype: any runtime loads it; the size is unchanged.',
  },
];

/** ONNX models stay ONNX, and no other model becomes ONNX. */
export const formatsOf = (model: Model | undefined) =>
  formats.filter(({ name }) => (name === 'onnx') === (model?.format === 'onnx'));

/** Recipes are for GGUF files, all other presets for all other formats. */
export const isRecipePreset = (preset: Preset | null | undefined) => preset != null && isRecipe(preset.config);

export const firstPreset = 'int4_wo_128';
export const perChannelPreset = 'int8';
export const firstRecipe = 'q4_k_m';
