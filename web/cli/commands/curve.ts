/** `wasmquant curve <model>`: size of the file against loss, for the schemes that a runtime reads. */
import { basename } from 'node:path';
import type { Curve, CurveOptions, CurvePoint, Model, Quantizer, RuntimeName, Spread } from '../../lib/node.js';
import { curvePicture, lossText } from '../../present/curve_picture.js';
import { isNotFaster, notFaster, ratioOfTimes, spreadText } from '../../present/speed_text.js';
import { bytesText, plural, shareText } from '../../present/units.js';
import { quantizerOptions, type ReportOptions, type ResourceOptions } from '../args.js';
import { presetNamed, readConfigText } from '../config_source.js';
import { type ModelFlags, modelSummary, openModel } from '../model_source.js';
import { onnxRuntimeInstall, onnxRuntimeTitle } from '../onnx_runtime/name.js';
import { findOnnxRuntime, runtimeFor } from '../onnx_runtime/runtime.js';
import type { Context, Outcome } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { startQuantizer } from '../quantizer.js';
import { checkReportPath, modelPaths, writeReport, writeWhole } from '../report_file.js';
import { type Column, table } from '../tables.js';
import { printable } from '../terminal.js';
import { openText } from '../token_source.js';

interface CurveCommand extends ResourceOptions, ReportOptions, ModelFlags {
  for?: RuntimeName;
  schemes?: string[];
  configs?: string[];
  text?: string;
  tokens?: string;
  length?: number;
  windows?: number;
  feeds?: string;
  measureSpeed?: boolean;
  svg?: string;
}

/** What the losses are, and of how much. */
function metricText({ kind, name, windows, reason }: Curve['metric']): string {
  const samples = windows === undefined ? '' : `, ${plural(windows, kind === 'output-error' ? 'feed' : 'window')}`;
  return `loss: ${name}${samples}${reason ? ` (${printable(reason)})` : ''}`;
}

function pointLoss(point: CurvePoint, kind: Curve['metric']['kind']): string {
  if (point.loss === null) return point.reason ? 'not measured' : '–';
  const text = lossText(point.loss, kind);
  if (!point.measured) return `about ${text}`;
  return point.error === undefined ? text : `${text} ± ${lossText(point.error, kind)}`;
}

/** Time of a run, and how it compares. `original`: that of the first row. */
const speedColumns = (original: Spread): Column<CurvePoint>[] => [
  {
    title: 'a run',
    align: 'right',
    cell: ({ scheme, speed }) =>
      speed ? spreadText(speed.milliseconds) : scheme === 'original' ? spreadText(original) : '–',
  },
  { title: 'speed', align: 'right', cell: ({ speed }) => (speed ? ratioOfTimes(speed) : '') },
];

function remarksOn({ onFrontier, speed, bytes }: CurvePoint, original: Curve['original']): string[] {
  return [
    ...(onFrontier ? ['nothing smaller is as good'] : []),
    ...(speed && isNotFaster(speed) && bytes < original.bytes ? [notFaster] : []),
  ];
}

/** What the times are of; '' if none were measured. */
function timesText({ points }: Curve): string {
  const speeds = points.flatMap(({ speed }) => speed ?? []);
  if (speeds.length === 0) return '';
  const none = speeds.every(isNotFaster) ? '; none is faster than the original here' : '';
  return `processor time of a run in ${onnxRuntimeTitle} on one thread: median and quartiles, each scheme in turns with the original${none}`;
}

function curveLines(path: string, model: Model, curve: Curve, { terminal }: Context): string[] {
  const { out: colors, columns } = terminal;
  const { metric, original, points, undecided } = curve;
  const rows = [
    { scheme: 'original', bytes: original.bytes, loss: original.loss, measured: true, onFrontier: false } as CurvePoint,
    ...points,
  ];
  const lines = table(
    rows,
    [
      { title: 'scheme', cell: ({ scheme }) => scheme, paint: ({ onFrontier }) => (onFrontier ? colors.bold : String) },
      { title: 'format', cell: ({ format }) => format ?? model.format, paint: () => colors.dim, spare: 1 },
      { title: 'file', align: 'right', cell: ({ bytes }) => bytesText(bytes) },
      { title: 'of the original', align: 'right', cell: ({ bytes }) => shareText(bytes, original.bytes), spare: 2 },
      { title: 'loss', align: 'right', cell: (point) => pointLoss(point, metric.kind) },
      ...(original.milliseconds ? speedColumns(original.milliseconds) : []),
      {
        title: '',
        cell: (point) => point.reason ?? remarksOn(point, original).join('; '),
        paint: () => colors.dim,
        prose: true,
      },
    ],
    { colors, columns },
  );
  const pairs = undecided.map(([better, worse]) => `${better} and ${worse}`).join('; ');
  return [
    `${colors.bold(printable(path))}  ${colors.dim(modelSummary(model))}`,
    '',
    ...lines,
    '',
    colors.dim(metricText(metric)),
    ...[timesText(curve)].filter(Boolean).map(colors.dim),
    ...(pairs
      ? [
          colors.dim(
            `too close to tell apart with these ${metric.kind === 'output-error' ? 'feeds' : 'windows'}: ${pairs}`,
          ),
        ]
      : []),
  ];
}

/** What the command line says about the input, in the library's terms. */
async function inputsOf(
  quantizer: Quantizer,
  model: Model,
  options: CurveCommand,
  signal: AbortSignal,
): Promise<{ given: CurveOptions; opened: Model[]; hint: string | null }> {
  if (model.format === 'onnx') {
    const isInstalled = (await findOnnxRuntime()) !== null;
    if (!isInstalled && options.feeds === undefined && !options.measureSpeed)
      return { given: {}, opened: [], hint: `to measure the outputs instead, run ${onnxRuntimeInstall} here` };
    const given = await runtimeFor(quantizer, options.feeds, signal);
    return { given, opened: given.feeds ? [given.feeds] : [], hint: null };
  }
  if (options.tokens !== undefined) {
    const tokens = await openModel(quantizer, options.tokens, signal);
    return { given: { tokens }, opened: [tokens], hint: null };
  }
  if (options.text === undefined)
    return { given: {}, opened: [], hint: 'for a language model, --text FILE measures bits per byte instead' };
  const { length } = options;
  const tokens = { ...(await openText([model], options.text)), ...(length !== undefined && { length }) };
  return { given: { tokens }, opened: [], hint: null };
}

export async function curve(context: Context, [path]: [string], options: CurveCommand): Promise<Outcome> {
  const { signal, terminal } = context;
  const { report, svg, schemes, windows } = options;
  const read = [path, options.text, options.tokens, options.feeds];
  const picture = { ...options, ...(svg !== undefined ? { report: svg } : { report: undefined }) } as ReportOptions;
  await checkReportPath(options, [...read, svg]);
  await checkReportPath(picture, read, '--svg');
  await using quantizer = await startQuantizer(quantizerOptions(options));
  await using model = await openModel(quantizer, path, signal, options);
  for (const each of [options, picture]) await checkReportPath(each, await modelPaths(path, model));
  const named = schemes?.map((name) => presetNamed(quantizer, name).name);
  const texts =
    options.configs?.map(
      async (file) => [basename(file), JSON.parse(await readConfigText(file, signal)) as object] as const,
    ) ?? [];
  const configs = Object.fromEntries(await Promise.all(texts));
  const { given, opened, hint } = await inputsOf(quantizer, model, options, signal);
  const bar = new ProgressBar(terminal, 'measuring');
  try {
    const found = await quantizer.curve(model, {
      ...given,
      ...(named && { schemes: named }),
      ...(options.configs && { configs }),
      ...(options.for && { target: options.for }),
      ...(windows !== undefined && { windows }),
      ...(options.measureSpeed && { measureSpeed: true }),
      signal,
      onProgress: bar.update,
    });
    const document = { ...found, model: path };
    if (report !== undefined) await writeReport(report, document);
    if (svg !== undefined) await writeWhole(svg, curvePicture(found, path));
    const wantsMore = found.metric.kind === 'weight-error' && hint !== null;
    return {
      document,
      lines: curveLines(path, model, found, context),
      ...(wantsMore && !terminal.json && { remarks: [hint] }),
    };
  } finally {
    bar.stop();
    for (const file of opened) await file.close();
  }
}
