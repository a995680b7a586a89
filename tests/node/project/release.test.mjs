// What keeps a release from being made: every rule by a checkout that breaks it alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newestRelease, problemsOf, withRepository } from '../../package/release.mjs';

const good = () => ({
  status: '',
  tags: ['v1.2.3'],
  changelog: '# Changelog\n\n## [1.2.3] - 2026-01-31\n\n## [1.2.2] - 2026-01-01\n',
  packageJson: { version: '1.2.3', repository: 'github:someone/wasmquant' },
  lock: { version: '1.2.3', packages: { '': { version: '1.2.3' } } },
  env: { CI: 'true', ACTIONS_ID_TOKEN_REQUEST_URL: 'https://token' },
});

test('a checkout that keeps every rule is released', () => {
  assert.deepEqual(problemsOf(good(), true), []);
  assert.deepEqual(problemsOf({ ...good(), tags: [], env: {} }, false), [], 'a rehearsal needs neither tag nor token');
  assert.deepEqual(newestRelease('## [0.1.0] - unreleased\n'), { version: '0.1.0', date: 'unreleased' });
});

const changed = (change) => Object.assign(good(), change);
for (const [name, checkout, pattern] of [
  ['changed files', changed({ status: ' M README.md' }), /has changes:\n M README\.md/],
  ['a changelog of another version', changed({ changelog: '## [1.2.2] - 2026-01-01\n' }), /\[1\.2\.2\].*1\.2\.3/],
  ['a changelog without a version', changed({ changelog: '' }), /begins with \[\]/],
  ['a lock file of another version', changed({ lock: { version: '1.2.2' } }), /package-lock\.json says 1\.2\.2/],
])
  test(`refused, rehearsal or not: ${name}`, () => {
    for (const publishes of [false, true]) {
      const problems = problemsOf(checkout, publishes);
      assert.ok(
        problems.some((problem) => pattern.test(problem)),
        problems.join('\n'),
      );
    }
  });

for (const [name, checkout, pattern] of [
  ['no date', changed({ changelog: '## [1.2.3] - unreleased\n' }), /has no date but "unreleased"/],
  ['no tag', changed({ tags: ['v1.2.2', ''] }), /not tagged v1\.2\.3/],
  ['no repository', changed({ packageJson: { version: '1.2.3' } }), /names no repository/],
  ['no CI', changed({ env: { ACTIONS_ID_TOKEN_REQUEST_URL: 'https://token' } }), /id-token/],
  ['no id-token', changed({ env: { CI: 'true' } }), /id-token/],
])
  test(`never published: ${name}`, () => {
    const problems = problemsOf(checkout, true);
    assert.equal(problems.length, 1);
    assert.match(problems[0], pattern);
    assert.deepEqual(problemsOf(checkout, false), []);
  });

test("the repository's address fills the fields that npm shows, and can be set again", () => {
  const json = { name: 'wasmquant', version: '1.2.3', description: 'd', keywords: [], license: 'MIT' };
  const expected = {
    ...json,
    repository: { type: 'git', url: 'git+https://host/someone/wasmquant.git' },
    homepage: 'https://host/someone/wasmquant#readme',
    bugs: 'https://host/someone/wasmquant/issues',
  };
  for (const address of [
    'https://host/someone/wasmquant',
    'https://host/someone/wasmquant.git',
    'https://host/someone/wasmquant/',
  ])
    assert.deepEqual(withRepository(withRepository(json, 'https://other/a/b'), address), expected);
  assert.throws(() => withRepository(json, 'wasmquant'), /HOST\/OWNER\/NAME/);
});
