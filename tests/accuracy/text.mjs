// The texts of the table: Python's language reference (pydoc_data.topics of the python3 found here), its topics split into three
// parts by a digest of their names. Algorithms calibrate on the first, the second is for choosing between variants, results are
// those of the third.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { findProgram, needs } from '../setup/command.mjs';

const parts = ['calibration', 'selection', 'report'];
const script =
  'import json, platform; from pydoc_data.topics import topics; print(json.dumps([platform.python_version(), topics]))';

const partOf = (topic) => parts[createHash('sha256').update(topic).digest()[0] % parts.length];

/** {version: of Python, calibration, selection, report: texts}. */
export function texts() {
  const python = findProgram('python3');
  if (!python) throw needs('python3 is missing: the texts are its language reference');
  const [version, topics] = JSON.parse(execFileSync(python, ['-c', script], { encoding: 'utf8', maxBuffer: 1 << 26 }));
  const names = Object.keys(topics).sort();
  const found = parts.map((part) => [part, names.filter((name) => partOf(name) === part).map((name) => topics[name])]);
  return { version, ...Object.fromEntries(found.map(([part, all]) => [part, all.join('\n')])) };
}
