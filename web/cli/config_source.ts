/**
 * The config of a run: a preset or a file, with `--exclude` and `--layer` applied.
 * `--exclude` adds to `exclude`; `--layer` inserts a key at the front of `layer_quant_config`, where the first matching glob wins,
 * `--layer-type` of `layer_type_quant_config`.
 */
import { readFile } from 'node:fs/promises';
import { formats } from '../lib/internal.js';
import type { Preset, Quantizer } from '../lib/node.js';
import { type Config, configOf, isRecipe, withExclusions, withLayers } from '../present/config_edits.js';
import type { ConfigOptions, LayerChoice } from './args.js';
import { CommandError, usageError } from './failure.js';
import { abortable } from './interrupt.js';

/** The preset with this name, or a usage error in the core's words: the available names, and the nearest one. */
export function presetNamed(quantizer: Quantizer, name: string): Preset {
  const found = quantizer.presets().find((preset) => preset.name === name.toLowerCase());
  if (found) return found;
  const [unknown] = quantizer.checkConfig(JSON.stringify(name));
  throw usageError(unknown?.message ?? `there is no preset "${name}"`, unknown?.hint);
}

/** The name as the core spells it, or the same error; the list of presets, whose configs it holds, would take longer. */
function presetName(quantizer: Quantizer, name: string): string {
  const known = name.toLowerCase();
  const isUnknown = quantizer.checkConfig(JSON.stringify(known)).some(({ code }) => code === 'preset-unknown');
  return isUnknown ? presetNamed(quantizer, name).name : known;
}

const kMostBytes = 256 * 2 ** 20;

async function readStdin(): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > kMostBytes)
      throw new CommandError('file-too-large', `the config has more than ${kMostBytes} bytes, which is the limit`, {
        where: 'stdin',
      });
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** Text of a config file; `-` is stdin. A byte order mark is dropped. */
export async function readConfigText(path: string, signal: AbortSignal): Promise<string> {
  const content = await abortable(signal, path === '-' ? readStdin() : readFile(path, 'utf8'));
  const json = content.replace(/^\uFEFF/, '');
  if (!json.trimStart().startsWith('{')) {
    const found = json.trim() === '' ? 'is empty' : 'does not start with {';
    const where = path === '-' ? 'stdin' : path;
    throw new CommandError('json-invalid', `the config ${found}; it must be a JSON object`, {
      where,
      hint: 'wasmquant config presets NAME prints one to start from',
    });
  }
  return json;
}

/** `--layer NAME=none` and `--layer-type CLASS=none` leave layers as they are. */
const kNone = 'none';

/** Types of a recipe's layers, or weight specs, by glob, in the given order; the core checks type names. */
function chosenLayers(quantizer: Quantizer, choices: LayerChoice[], forRecipe: boolean): Map<string, unknown> {
  const chosen = new Map<string, unknown>();
  for (const { glob, preset } of choices) {
    if (chosen.has(glob) || preset === kNone) continue;
    chosen.set(glob, forRecipe ? preset : { weight: weightOf(quantizer, glob, preset) });
  }
  return chosen;
}

/** The weight spec of a preset. */
function weightOf(quantizer: Quantizer, glob: string, preset: string): unknown {
  const { global_quant_config: global } = presetNamed(quantizer, preset).config as {
    global_quant_config?: { weight: unknown };
  };
  if (!global) throw usageError(`--layer ${glob}=${preset}: ${preset} is a complete config, not a spec for a layer`);
  return global.weight;
}

/**
 * The config for `plan` and `quantizeModel`. A file without edits is passed unchanged, so that pointers fit the file.
 */
export async function configFor(
  quantizer: Quantizer,
  options: ConfigOptions,
  signal: AbortSignal,
): Promise<string | object> {
  const { layer = [], layerType = [], pure = false } = options;
  const left = [...layer, ...layerType].filter(({ preset }) => preset === kNone).map(({ glob }) => glob);
  const exclude = [...(options.exclude ?? []), ...left];
  const hasEdits = exclude.length > 0 || layer.length > 0 || layerType.length > 0;
  if (options.preset !== undefined && !hasEdits && !pure) return presetName(quantizer, options.preset);
  const named = options.preset === undefined ? undefined : presetNamed(quantizer, options.preset);
  const config = named && configOf(named, options.format !== undefined && formats.outputs[options.format].takesRecipes);
  const forRecipe = config !== undefined && isRecipe(config);
  if (pure && !forRecipe)
    throw usageError(
      '--pure works only with GGUF recipes',
      'give one: --preset q4_k_m, or write "pure": true in the config',
    );
  if (forRecipe && layerType.length > 0)
    throw usageError('--layer-type does not work with GGUF recipes', 'name layers with --layer, such as "*embd*=q8_0"');
  const layers = chosenLayers(quantizer, layer, forRecipe);
  const types = chosenLayers(quantizer, layerType, false);
  const edited = (whole: Config) =>
    withLayers(withLayers(withExclusions(whole, exclude), layers), types, 'layer_type_quant_config');
  if (config) return edited(pure ? { ...config, pure } : config);
  if (options.config === undefined) {
    throw usageError(
      'nothing says how to quantize: give --preset NAME or --config FILE',
      'usual presets: int8, int4_wo_128, q4_k_m for GGUF; wasmquant config presets lists all',
    );
  }
  const json = await readConfigText(options.config, signal);
  if (!hasEdits) return json;
  const { dialect, config: parsed } = quantizer.parseConfig(json);
  // The edits use Quark's keys.
  if (dialect === 'quark') return edited(parsed);
  const { config: converted, losses } = quantizer.convertConfig(json, 'quark');
  const [first] = losses;
  if (first !== undefined) {
    const more = losses.length > 1 ? ` (and ${losses.length - 1} more)` : '';
    throw new CommandError(
      'config-invalid',
      `a ${dialect} config cannot be combined with --exclude, --layer and --layer-type: ${first.message}${more}`,
      {
        where: first.where,
        hint: 'convert it first (wasmquant config convert --to quark), read what is lost, and use the result',
      },
    );
  }
  return edited(converted as Config);
}
