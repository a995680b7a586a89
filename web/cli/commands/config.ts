/** `wasmquant config check|convert|presets`: configs without a model. */
import type { Diagnostic, Dialect, Preset } from '../../lib/node.js';
import { usualPresets } from '../../present/runtimes/table.js';
import { presetNamed, readConfigText } from '../config_source.js';
import { diagnosticLines, severityText } from '../diagnostics.js';
import type { Context, Outcome } from '../outcome.js';
import { startQuantizer } from '../quantizer.js';
import { table } from '../tables.js';
import { jsonText, printable } from '../terminal.js';

export async function checkConfig({ terminal, signal }: Context, [path]: [string]): Promise<Outcome> {
  await using quantizer = await startQuantizer({ threads: 0 });
  const diagnostics: Diagnostic[] = quantizer.checkConfig(await readConfigText(path, signal));
  const failed = diagnostics.some((diagnostic) => diagnostic.severity === 'error');
  const { out: colors } = terminal;
  const verdict = failed ? colors.red('not usable') : colors.green('usable');
  const summary = `${colors.bold(printable(path))}: ${verdict}, ${severityText(diagnostics)}`;
  return {
    document: { valid: !failed, diagnostics },
    lines: [...diagnosticLines(diagnostics, colors), ...(diagnostics.length > 0 ? [''] : []), summary],
    failed,
  };
}

export async function convertConfig(
  { terminal, signal }: Context,
  [path]: [string],
  { to }: { to: Dialect },
): Promise<Outcome> {
  await using quantizer = await startQuantizer({ threads: 0 });
  const document = quantizer.convertConfig(await readConfigText(path, signal), to);
  return { document, lines: [jsonText(document.config)], remarks: diagnosticLines(document.losses, terminal.err) };
}

export async function presets(
  { terminal }: Context,
  [name]: [string?],
  { all = false }: { all?: boolean },
): Promise<Outcome> {
  await using quantizer = await startQuantizer({ threads: 0 });
  if (name !== undefined) {
    const preset = presetNamed(quantizer, name);
    return { document: preset, lines: [jsonText(preset.config)] };
  }
  const known = quantizer.presets();
  const document = all ? known : known.filter((preset) => usualPresets.has(preset.name));
  const others = known.length - document.length;
  const { out: colors, columns } = terminal;
  const lines = table<Preset>(
    document,
    [
      { title: 'preset', cell: (preset) => preset.name, paint: () => colors.bold },
      { title: 'what it does', cell: (preset) => preset.title },
      { title: 'when to use it', cell: (preset) => preset.description, paint: () => colors.dim, prose: true },
    ],
    { colors, columns },
  );
  return {
    document: { presets: document },
    lines: [
      ...lines,
      '',
      ...(others > 0 ? [colors.dim(`--all lists ${others} more, for one runtime or one need each`)] : []),
      colors.dim('wasmquant config presets NAME prints the config, to save and edit'),
    ],
  };
}
