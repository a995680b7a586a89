// Rows of the table of `npm run test:peers`.
import { Explained, layerDifferences, refusals } from './differences/config_differences.mjs';

/** One thing that is compared, case by case. */
export class Row {
  passed = 0;
  /** Cases that ours or the peer refuses, for reasons that are listed. */
  refused = 0;
  /** Cases that differ, for reasons that are listed. */
  differing = 0;
  /** A text a case. */
  failures = [];
  explained = new Explained();
  /** More to say of it, or undefined. */
  note;

  constructor(what) {
    this.what = what;
  }

  /** One case: what differs in layers, why it is refused, which layers the plan lacks; `explanations` are reasons to refuse. */
  add(name, { differences = [], problems = [], missing = [], explanations = refusals }) {
    const open = [
      ...problems
        .filter((problem) => !this.explained.by(explanations, problem))
        .map(({ code, where, message }) => `refused: ${code} ${where} ${message}`),
      ...missing.map((layer) => `${layer} is not in the plan`),
      ...differences
        .filter((difference) => !this.explained.by(layerDifferences, difference))
        .map(
          ({ layer, ours, theirs, tensor }) =>
            `${layer}\n    Quark ${theirs}\n    ours  ${ours}, because: ${tensor.reason.text}`,
        ),
    ];
    if (open.length > 0) this.fail(name, `${open[0]}${open.length > 1 ? `\n    and ${open.length - 1} more` : ''}`);
    else if (problems.length > 0) this.refused++;
    else this.passed++;
  }

  fail(name, why) {
    this.failures.push(`${name}: ${why}`);
  }
}
