// A row of the table of `npm run test:peers` whose cases are whole configs or tensors; quark/rows.mjs has those of layers.
import { Explained } from './quark/differences/config_differences.mjs';

export class CaseRow {
  passed = 0;
  /** Cases that ours refuses and the peer takes, or the other way round, for reasons that are listed. */
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

  /** A case that both take, with what differs and is not listed. `isExplained`: something differs that is. */
  add(name, failures, isExplained = false) {
    if (failures.length > 0)
      this.failures.push(
        `${name}: ${failures[0]}${failures.length > 1 ? `\n    and ${failures.length - 1} more` : ''}`,
      );
    else if (isExplained) this.differing++;
    else this.passed++;
  }

  /** A case that one of the two refuses: `what` is given to the rows of `listed`, `why` is shown when none explains it. */
  refuse(name, listed, what, why) {
    if (this.explained.by(listed, what)) this.refused++;
    else this.failures.push(`${name}: ${why}`);
  }
}
