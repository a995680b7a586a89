/**
 * The config of a run: a preset or a file, then `--exclude` and `--layer` written into it.
 * `--exclude` adds to `exclude`; `--layer` puts a key before those of `layer_quant_config`, where the first matching glob wins.
 */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Preset, Quantizer } from '../lib/node.js';
import type { ConfigOptions, LayerChoice } from './args.js';
import { CommandError, usageError } from './failure.js';
import { abortable } from './interrupt.js';

/** Edits (insert, delete, replace) that turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The preset of that name, or a usage error that lists all of them, the nearest first. */
export function presetNamed(quantizer: Quantizer, name: string): Preset {
  const presets = quantizer.presets();
  const found = presets.find((preset) => preset.name === name);
  if (found) return found;
  const byDistance = presets
    .map((preset) => ({ name: preset.name, distance: editDistance(name.toLowerCase(), preset.name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const nearest = byDistance[0];
  const near = nearest !== undefined && nearest.distance <= Math.max(2, name.length / 2);
  const suggestion = near ? `did you mean ${nearest.name}? ` : '';
  throw usageError(
    `there is no preset "${name}"`,
    `${suggestion}presets: ${presets.map((preset) => preset.name).join(', ')}`,
  );
}

/** Text of a config file; `-` is stdin. A byte order mark is dropped. */
export async function readConfigText(path: string, signal: AbortSignal): Promise<string> {
  const content = await abortable(signal, path === '-' ? text(process.stdin) : readFile(path, 'utf8'));
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

/** Weight specs of `--layer` by glob, the first one given first. */
function chosenLayers(quantizer: Quantizer, choices: LayerChoice[]): Map<string, unknown> {
  const chosen = new Map<string, unknown>();
  for (const { glob, preset } of choices) {
    const { global_quant_config: global } = presetNamed(quantizer, preset).config as {
      global_quant_config?: { weight: unknown };
    };
    if (!global)
      throw usageError(`--layer ${glob}=${preset}: ${preset} is a config of its own, not a spec for a layer`);
    if (!chosen.has(glob)) chosen.set(glob, { weight: global.weight });
  }
  return chosen;
}

/** A recipe for GGUF files with exclusions and other types; the core checks their names. */
function recipeWithEdits(recipe: string, exclude: string[], choices: LayerChoice[], pure: boolean): object {
  const layers: Record<string, string> = {};
  for (const { glob, preset } of choices) layers[glob] ??= preset;
  return { dialect: 'gguf', recipe, pure, layers, exclude };
}

/** `config` with more exclusions, and with `layers` before its own. */
function withEdits(config: Record<string, unknown>, exclude: string[], layers: Map<string, unknown>): object {
  const edited = structuredClone(config);
  if (exclude.length > 0) edited.exclude = [...((edited.exclude as string[] | null | undefined) ?? []), ...exclude];
  if (layers.size > 0) {
    const own = Object.entries((edited.layer_quant_config as object | null | undefined) ?? {});
    edited.layer_quant_config = Object.fromEntries([...layers, ...own.filter(([glob]) => !layers.has(glob))]);
  }
  return edited;
}

/** What `plan` and `quantizeModel` take. A file without edits goes to the library as it is, so that pointers fit the file. */
export async function configFor(
  quantizer: Quantizer,
  options: ConfigOptions,
  signal: AbortSignal,
): Promise<string | object> {
  const exclude = options.exclude ?? [];
  const edits = exclude.length > 0 || (options.layer ?? []).length > 0;
  const named = options.preset === undefined ? undefined : presetNamed(quantizer, options.preset);
  const pure = options.pure === true;
  if (named && ('recipe' in named.config || options.format === 'gguf'))
    return edits || pure ? recipeWithEdits(named.name, exclude, options.layer ?? [], pure) : named.name;
  if (pure)
    throw usageError(
      '--pure is for recipes of GGUF files',
      'give one: --preset q4_k_m, or write "pure": true in the config',
    );
  const layers = chosenLayers(quantizer, options.layer ?? []);
  if (named) {
    const preset = named;
    return edits ? withEdits(preset.config, exclude, layers) : preset.name;
  }
  if (options.config === undefined) {
    const names = quantizer.presets().map((preset) => preset.name);
    throw usageError('how to quantize is missing: --preset NAME or --config FILE', `presets: ${names.join(', ')}`);
  }
  const json = await readConfigText(options.config, signal);
  if (!edits) return json;
  const { dialect, config } = quantizer.parseConfig(json);
  // Quark's keys are what the edits are written in.
  if (dialect === 'quark') return withEdits(config, exclude, layers);
  const { config: converted, losses } = quantizer.convertConfig(json, 'quark');
  const [first] = losses;
  if (first !== undefined) {
    const more = losses.length > 1 ? ` (and ${losses.length - 1} more)` : '';
    throw new CommandError(
      'config-invalid',
      `a ${dialect} config cannot take --exclude and --layer: ${first.message}${more}`,
      {
        where: first.where,
        hint: 'convert it first (wasmquant config convert --to quark), read what is lost, and use the result',
      },
    );
  }
  return withEdits(converted as Record<string, unknown>, exclude, layers);
}
