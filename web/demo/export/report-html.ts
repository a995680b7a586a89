// A report as one self-contained HTML page, in light and dark, without scripts. Names come from files and are
// untrusted: everything inserted is escaped.
import type { TensorReport } from 'wasmquant';
import { coverageText, percentText, shownLeft } from '../../present/coverage';
import { actionText } from '../../present/spec_text';
import { bytesText, countText, plural, ratioText, shapeText } from '../../present/units';
import { percent } from '../../present/verdict';
import { type ErrorKind, errorsOf, ruleOf, wordOf } from '../report/errors';
import type { FinishedRun } from '../run/runs';

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

const style = `
  :root { color-scheme: light dark }
  body { max-width: 1100px; margin: 32px auto; padding: 0 20px; font: 15px/1.5 system-ui, sans-serif }
  h1 { font-size: 22px } h2 { margin-top: 32px; font-size: 17px }
  dl { display: flex; flex-wrap: wrap; gap: 8px 40px } dt { opacity: .75; font-size: 13px } dd { margin: 0; font-size: 18px }
  table { width: 100%; border-collapse: collapse; font-size: 14px }
  th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid #8886; text-align: left; vertical-align: top }
  td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
  code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 13px; overflow-wrap: anywhere }
  pre { overflow-x: auto }`;

function row(tensor: TensorReport, kind: ErrorKind, error: number | null | undefined): string {
  const { name, shape, dtype, reason, bytesBefore, bytesAfter } = tensor;
  const cells = [
    `<td><code>${escaped(name)}</code></td>`,
    `<td>${escaped(shapeText(shape))} ${escaped(dtype)}</td>`,
    `<td title="${escaped(reason.text)}">${escaped(actionText(tensor))}</td>`,
    `<td class="number">${bytesText(bytesBefore)} → ${bytesText(bytesAfter)}</td>`,
    `<td class="number">${error == null ? '' : `${percent(error)} ${wordOf(kind, error)}`}</td>`,
  ];
  return `<tr>${cells.join('')}</tr>`;
}

/** @param version of the library */
export function reportHtml({ report, config, modelTitle, configTitle, plan }: FinishedRun, version: string): string {
  const { totals } = report;
  const { title: kind, list } = errorsOf(report);
  const errors = new Map(list.map(({ tensor, error }) => [tensor, error]));
  const figures = [
    [
      'File size',
      `${bytesText(totals.bytesBefore)} → ${bytesText(totals.bytesAfter)}, ${ratioText(totals.bytesBefore, totals.bytesAfter)}`,
    ],
    ['Bits per quantized weight', totals.bitsPerWeight.toFixed(2)],
    ['Tensors quantized', `${countText(totals.quantized)} of ${countText(totals.tensors)}`],
    ['Quantized', coverageText(totals.coverage)],
    ['Format', plan.format],
  ];
  const { shown, more } = shownLeft(totals.coverage.left);
  const left = shown.map(
    (row) =>
      `<li>${escaped(`${bytesText(row.bytes)} (${percentText(row.bytes, totals.coverage.bytes)}), ${plural(row.tensors, 'tensor')}: ${row.text}`)}</li>`,
  );
  if (more !== '') left.push(`<li>${more}</li>`);
  const remarks = report.diagnostics.map(
    ({ severity, message, where }) => `<li>${escaped(`${severity}: ${message}${where ? ` (${where})` : ''}`)}</li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(modelTitle)}, ${escaped(configTitle)}</title>
<style>${style}
</style>
</head>
<body>
<h1>${escaped(modelTitle)}, ${escaped(configTitle)}</h1>
<dl>${figures.map(([label = '', value = '']) => `<div><dt>${label}</dt><dd>${escaped(value)}</dd></div>`).join('')}</dl>
${left.length > 0 ? `<h2>Left as they are</h2>\n<ul>${left.join('')}</ul>` : ''}
${remarks.length > 0 ? `<h2>Remarks</h2>\n<ul>${remarks.join('')}</ul>` : ''}
<h2>Tensors</h2>
<table>
<thead><tr><th>Tensor</th><th>Shape</th><th>Became</th><th>Size</th><th>${kind.replace(/^./, (letter) => letter.toUpperCase())}</th></tr></thead>
<tbody>
${report.tensors.map((tensor) => row(tensor, kind, errors.get(tensor))).join('\n')}
</tbody>
</table>
<p>${ruleOf(kind)}.</p>
<h2>Config</h2>
<pre>${escaped(JSON.stringify(config, null, 2))}</pre>
<p>wasmquant ${escaped(version)}</p>
</body>
</html>
`;
}
