/** Diagnostics of the library, one block each: severity, pointer, message, hint. */
import type { Diagnostic } from '../lib/node.js';
import { collapse, type Group, single } from '../present/collapse.js';
import { withSubject } from '../present/sentence.js';
import { plural } from '../present/units.js';
import type { Colors, Paint } from './terminal.js';
import { printable } from './terminal.js';

const kSeverities: Diagnostic['severity'][] = ['error', 'warning', 'note'];

function paintOf(severity: Diagnostic['severity'], colors: Colors): Paint {
  if (severity === 'error') return colors.red;
  return severity === 'warning' ? colors.yellow : colors.cyan;
}

const isPointer = ({ where }: Diagnostic) => where.startsWith('/');

/** Pointers into a config are unchanged; remarks on tensors that differ only in the layer's number are merged. */
function grouped(diagnostics: Diagnostic[]): Group<Diagnostic>[] {
  const rows = diagnostics.map((diagnostic) => ({ ...diagnostic, name: diagnostic.where }));
  const alike = ({ code, message, hint }: Diagnostic) => JSON.stringify([code, message, hint]);
  return [
    ...single(rows.filter(isPointer)),
    ...collapse(
      rows.filter((row) => !isPointer(row)),
      alike,
    ),
  ];
}

/** Errors first, then warnings, then notes, each in the library's order. */
export function diagnosticLines(diagnostics: Diagnostic[], colors: Colors): string[] {
  const groups = kSeverities.flatMap((severity) => {
    return grouped(diagnostics.filter((diagnostic) => diagnostic.severity === severity));
  });
  return groups.flatMap(({ name, rows }) => {
    const [first] = rows;
    if (!first) return [];
    const { severity, code, message, hint } = first;
    const label = paintOf(severity, colors)(severity.padEnd(7));
    const count = rows.length > 1 ? `${rows.length} ×  ` : '';
    const place = name ? `${printable(name)}  ${count}` : '';
    const clause = withSubject(name, message);
    const lines = [`${label}  ${place}${colors.dim(printable(code))}`, `         ${printable(clause)}`];
    // The hint of JSON that cannot be read is its line, and a caret below it.
    const [excerpt = '', caret] = (hint ?? '').split('\n');
    if (caret !== undefined) lines.push(`         ${printable(excerpt)}`, `         ${printable(caret)}`);
    else if (hint) lines.push(`         ${colors.dim('hint:')} ${printable(hint)}`);
    return lines;
  });
}

/** `2 errors, 1 warning`; `no problems`. */
export function severityText(diagnostics: Diagnostic[]): string {
  const counts = kSeverities.map(
    (severity) => [severity, diagnostics.filter((d) => d.severity === severity).length] as const,
  );
  const parts = counts.filter(([, count]) => count > 0).map(([severity, count]) => plural(count, severity));
  return parts.length > 0 ? parts.join(', ') : 'no problems';
}
