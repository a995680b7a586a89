// One report of a run that wrote several graphs of a model.

import type { Coverage, Diagnostic, LeftTensors, RunReport, Totals } from '../api/types.js';
import type { OpenedModel } from '../model/model.js';

function wholeCoverage(all: readonly Coverage[]): Coverage {
  const sum = (of: (each: Coverage) => number) => all.reduce((total, each) => total + of(each), 0);
  const left: LeftTensors[] = [];
  for (const row of all.flatMap((each) => each.left)) {
    const same = left.find(({ rule, text }) => rule === row.rule && text === row.text);
    if (same) {
      same.tensors += row.tensors;
      same.parameters += row.parameters;
      same.bytes += row.bytes;
    } else left.push({ ...row });
  }
  return {
    parameters: sum((each) => each.parameters),
    quantizedParameters: sum((each) => each.quantizedParameters),
    bytes: sum((each) => each.bytes),
    quantizedBytes: sum((each) => each.quantizedBytes),
    left: left.sort((a, b) => b.bytes - a.bytes),
  };
}

function wholeTotals(all: readonly Totals[]): Totals {
  const sum = (of: (each: Totals) => number) => all.reduce((total, each) => total + of(each), 0);
  const coverage = wholeCoverage(all.map((each) => each.coverage));
  const bits = sum(({ bitsPerWeight, coverage }) =>
    coverage.quantizedParameters > 0 ? bitsPerWeight * coverage.quantizedParameters : 0,
  );
  return {
    tensors: sum((each) => each.tensors),
    quantized: sum((each) => each.quantized),
    bytesBefore: sum((each) => each.bytesBefore),
    bytesAfter: sum((each) => each.bytesAfter),
    bitsPerWeight: coverage.quantizedParameters > 0 ? bits / coverage.quantizedParameters : 0,
    coverage,
  };
}

/** A part that the config leaves as it is does not end the run. */
function remarksOf(report: RunReport, model: OpenedModel): Diagnostic[] {
  const [source] = model.files;
  const [written] = report.files;
  return report.diagnostics.map((remark) =>
    remark.code === 'nothing-quantized'
      ? {
          severity: 'warning',
          code: 'onnx-parts',
          where: source?.name ?? '',
          message: `is written as ${written?.name}, without quantized weights: ${remark.message}`,
          hint: 'choose its dtype by name when the model is loaded',
        }
      : remark,
  );
}

/** The sum of the reports of a model's graphs. Tensors of the second graph and the following are named after their file,
 * as in `vision_encoder/dense.weight`. */
export function wholeReport(models: readonly OpenedModel[], reports: readonly RunReport[]): RunReport {
  const [first] = reports;
  if (!first) throw new RangeError('a run without graphs');
  const prefixes = models.map(({ files: [file] }, number) =>
    number === 0 ? '' : `${(file?.name ?? '').replace(/\.onnx$/i, '')}/`,
  );
  const remarks = reports.flatMap((report, number) => (models[number] ? remarksOf(report, models[number]) : []));
  const isFirst = (remark: Diagnostic, at: number) =>
    remarks.findIndex((other) => JSON.stringify(other) === JSON.stringify(remark)) === at;
  return {
    ...first,
    tensors: reports.flatMap(({ tensors }, number) =>
      tensors.map((tensor) => ({ ...tensor, name: `${prefixes[number]}${tensor.name}` })),
    ),
    files: reports.flatMap(({ files }) => files),
    totals: wholeTotals(reports.map(({ totals }) => totals)),
    diagnostics: remarks.filter(isFirst),
  };
}
