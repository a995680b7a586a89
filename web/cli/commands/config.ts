/** `wasmquant config check|convert|presets`: configs without a model. */
import { type Command, Option } from 'commander';
import type { Diagnostic, Dialect, Preset } from '../../lib/node.js';
import { createQuantizer } from '../../lib/node.js';
import { usualPresets } from '../../present/runtimes/table.js';
import { addOutputOptions } from '../args.js';
import { presetNamed, readConfigText } from '../config_source.js';
import { diagnosticLines, severityText } from '../diagnostics.js';
import type { Context, Outcome, Run } from '../outcome.js';
import { table } from '../tables.js';
import { jsonText, printable } from '../terminal.js';

const kDialects: Dialect[] = ['quark', 'brevitas', 'aihwkit', 'compressed-tensors', 'gptq', 'awq'];
const kFileArgument = 'config file (JSON, also a config.json with quantization_config); - reads stdin';

async function check({ terminal, signal }: Context, path: string): Promise<Outcome> {
  await using quantizer = await createQuantizer({ threads: 0 });
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

async function convert({ terminal, signal }: Context, path: string, to: Dialect): Promise<Outcome> {
  await using quantizer = await createQuantizer({ threads: 0 });
  const document = quantizer.convertConfig(await readConfigText(path, signal), to);
  return { document, lines: [jsonText(document.config)], remarks: diagnosticLines(document.losses, terminal.err) };
}

async function presets({ terminal }: Context, name: string | undefined, all: boolean): Promise<Outcome> {
  await using quantizer = await createQuantizer({ threads: 0 });
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

export function addConfig(program: Command, run: Run): void {
  const config = program.command('config').description('check, convert and list configs');
  addOutputOptions(
    config
      .command('check')
      .description('list all problems of a config, without a model')
      .argument('<file>', kFileArgument),
  ).action((file: string, options: object) => run(options, (context) => check(context, file)));
  addOutputOptions(
    config
      .command('convert')
      .description('convert a config to another dialect and list what is lost')
      .argument('<file>', kFileArgument)
      .addOption(new Option('--to <dialect>', 'target dialect').choices(kDialects).makeOptionMandatory()),
  ).action((file: string, options: { to: Dialect }) => run(options, (context) => convert(context, file, options.to)));
  addOutputOptions(
    config
      .command('presets')
      .description('list the ready-made configs that most people choose from, or print one')
      .argument('[name]', 'preset to print as JSON')
      .option('-a, --all', 'list every one'),
  ).action((name: string | undefined, options: { all?: boolean }) =>
    run(options, (context) => presets(context, name, options.all ?? false)),
  );
}
