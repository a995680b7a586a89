/** Options that several commands share. */
import { type Command, Option } from 'commander';
import { outputFormats } from '../../lib/node.js';
import { parseAccuracyLevel, parseCount, parseLayer, parsePattern, parseSize, parseThreads } from './values.js';

export const kModelArgument =
  'file, folder (config.json and shards), index file, http(s) URL, or hf:org/model[@revision][/file]';

export const kStripPrefix = new Option(
  '--strip-prefix',
  'name tensors without the _orig_mod., module. and base_model.model. that wrappers added',
);

export const kSource = new Option(
  '--source <folder>',
  'for a GGUF file that does not tell its tokenizer, RoPE scaling or experts: the folder it was made from',
);

export function addOutputOptions(command: Command): Command {
  return command
    .option('--json', 'print one JSON document on stdout, nothing else')
    .option('--quiet', 'no progress or remarks on stderr')
    .option('--no-color', 'no colours (NO_COLOR does the same)');
}

/** `several`: what the command does with a list of presets; '' if it takes one. */
export function addConfigOptions(command: Command, several = ''): Command {
  const preset = `ready-made config; see: wasmquant config presets${several}`;
  return command
    .addOption(new Option('-p, --preset <name>', preset).conflicts('config'))
    .option('-c, --config <file>', 'config file (JSON, in the format of AMD Quark); - reads stdin')
    .option(
      '-x, --exclude <glob>',
      'do not quantize these layers, or layers of a class or operator such as Conv1d or Gemm (repeatable)',
      parsePattern,
    )
    .option(
      '-l, --layer <glob=preset>',
      'another preset for these layers, or none (repeatable, first match wins)',
      parseLayer,
    )
    .option(
      '--layer-type <class=preset>',
      'another preset, or none, for layers of a class such as GRU, LSTM, Embedding or Conv2d (repeatable)',
      parseLayer,
    )
    .option('--pure', "GGUF recipes: the recipe's main type in every layer, as llama-quantize --pure");
}

export function addFormatOption(command: Command): Command {
  return command.addOption(
    new Option(
      '-f, --format <name>',
      'output format (default: the format of GGUF and ONNX models, gguf for its recipes, otherwise compressed-tensors)',
    ).choices(outputFormats),
  );
}

export function addOnnxOptions(command: Command): Command {
  return command
    .option(
      '--qdq',
      'ONNX: DequantizeLinear before every quantized weight; session.qdq_matmulnbits_accuracy_level decides how it computes',
    )
    .addOption(
      new Option(
        '--accuracy-level <n>',
        'ONNX: precision that MatMulNBits may compute in, for 8 bits, too: 1 float32, 2 float16, 3 bfloat16, 4 int8',
      ).argParser(parseAccuracyLevel),
    )
    .option('--external-data', 'ONNX: weights in a separate file, <output>_data (default: above 1.5 GiB)')
    .option(
      '--constant-inputs',
      'ONNX: quantize weights that are also inputs of the graph; callers can no longer set them',
    );
}

export function addGgufOptions(command: Command): Command {
  return command
    .option('--imatrix <file>', 'GGUF: importance matrix of llama-imatrix or of wasmquant imatrix')
    .option(
      '--shard-size <size>',
      'GGUF: split the output into files of this size, such as 500MB, in a folder',
      parseSize,
    )
    .option('--mmproj', 'GGUF: the file for images that llama.cpp takes as --mmproj, in place of the language model');
}

export function addInclusionOptions(command: Command): Command {
  return command
    .option('--include-towers', 'also quantize vision and audio towers and projectors, which presets skip')
    .addOption(
      new Option(
        '--include-experts',
        'also quantize experts that only vLLM can read (those that transformers reads are quantized anyway)',
      ).conflicts('excludeExperts'),
    )
    .option('--exclude-experts', 'leave the experts of a mixture as they are');
}

export function addResourceOptions(command: Command): Command {
  return command
    .option('-t, --threads <n>', 'workers; 0 = none (default: one per core, at most 8)', parseThreads)
    .option('-m, --memory <size>', 'memory for all workers together, such as 256M or 2GiB (default: 1GiB)', parseSize);
}

export function addReportOptions(command: Command, replaces: string): Command {
  return command
    .option('-r, --report <file>', 'also write the report as JSON to this file')
    .option('--force', `replace ${replaces}`);
}

export function addTokenOptions(command: Command): Command {
  const ofText = (flags: string, text: string) => new Option(flags, text).argParser(parseCount).conflicts('tokens');
  return command
    .addOption(
      new Option(
        '--tokens <file>',
        'safetensors file with token ids, I64, I32 or U16 [sequences, length]; attention_mask marks padding',
      ).conflicts('text'),
    )
    .addOption(
      new Option('--tensor <name>', 'tensor of that file (default: input_ids, tokens or the only one)').conflicts(
        'text',
      ),
    )
    .option('--text <file>', "text instead, or JSON lines with a field text, through the model's tokenizer.json")
    .addOption(ofText('--length <n>', 'tokens per sequence of the text (default: 256)'))
    .addOption(ofText('--sequences <n>', 'maximum number of sequences from the text'));
}
