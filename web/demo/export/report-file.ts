// A report as a file: JSON like the command line's --report, plus what was run.
import type { FinishedRun } from '../run/runs';

/** The report with its config. Infinite SQNR (nothing changed) is null in JSON. */
export function reportJson({ report, config, modelTitle, configTitle }: FinishedRun, version: string): string {
  return `${JSON.stringify({ model: modelTitle, title: configTitle, config, ...report, version }, null, 2)}\n`;
}

/** Offers text as a download. */
export function saveText(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download has begun when the click returns; the browser keeps its bytes.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
