// npm run release: everything that a published version needs, and then npm publish --provenance, which by default only
// rehearses. Provenance is npm's signed statement of which commit and which workflow a package was built from; npm takes
// it from the id-token of a CI run.
//   npm run release                a rehearsal, on any machine
//   npm run release -- --repository https://HOST/OWNER/NAME   writes repository, homepage and bugs into package.json, once:
//     npm shows them, and resolves the README's links and pictures against them; commit the change
//   npm run release -- --publish   publishes: only in CI with an id-token, from a tag v<version> of the commit
// The checks come first and all of them are told; nothing is built when one fails. Exit code 1 then, or when a test fails.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { main, needs, root, run } from '../setup/command.mjs';

/** `0.2.0`, `0.2.0-rc.1` */
const versionPattern = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;

function git(args) {
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (error) throw needs(`git cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`git ${args.join(' ')} ended with exit code ${status}\n${stderr}`);
  return stdout.trim();
}

/** Its first release: `## [0.2.0] - 2026-01-31`, or `unreleased`. */
export function newestRelease(changelog) {
  const [, version = '', date = ''] = /^## \[([^\]]+)\](?: - (.*))?$/m.exec(changelog) ?? [];
  return { version, date: date.trim() };
}

/** What speaks against a release, in sentences; `publishes`: not only a rehearsal. */
export function problemsOf({ status, tags, changelog, packageJson, lock, env }, publishes) {
  const { version, repository } = packageJson;
  const release = newestRelease(changelog);
  const problems = [];
  if (!versionPattern.test(version)) problems.push(`package.json: version ${version} is no version`);
  if (status !== '') problems.push(`the checkout has changes:\n${status}`);
  if (release.version !== version)
    problems.push(`CHANGELOG.md begins with [${release.version}], package.json says ${version}`);
  if (lock.version !== version || lock.packages?.['']?.version !== version)
    problems.push(`package-lock.json says ${lock.version}, package.json ${version}: run npm install`);
  if (!publishes) return problems;
  if (!/^\d{4}-\d\d-\d\d$/.test(release.date))
    problems.push(`CHANGELOG.md: [${release.version}] has no date but "${release.date}"`);
  if (!tags.includes(`v${version}`)) problems.push(`the commit is not tagged v${version}`);
  if (!repository)
    problems.push(
      'package.json names no repository: --publish needs it, npm compares it with the one that CI runs in; npm run release -- --repository URL writes it',
    );
  const hasToken = env.ACTIONS_ID_TOKEN_REQUEST_URL || env.SIGSTORE_ID_TOKEN;
  if (!env.CI || !hasToken)
    problems.push(
      '--publish is for CI with an id-token (permission id-token: write); without --publish this is a rehearsal, on any machine',
    );
  return problems;
}

/** package.json with the fields that follow from the address of the public repository. Throws if it is none. */
export function withRepository(packageJson, address) {
  const url = /^https:\/\/[^\s/]+\/[^\s/]+\/[^\s/]+?(?=(\.git)?\/?$)/.exec(address)?.[0];
  if (!url) throw needs(`--repository ${address}: an address such as https://HOST/OWNER/NAME is needed`);
  const fields = {
    repository: { type: 'git', url: `git+${url}.git` },
    homepage: `${url}#readme`,
    bugs: `${url}/issues`,
  };
  const { name, version, description, keywords, repository, homepage, bugs, ...rest } = packageJson;
  return { name, version, description, keywords, ...fields, ...rest };
}

function checkout() {
  const json = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
  return {
    status: git(['status', '--porcelain']),
    tags: git(['tag', '--points-at', 'HEAD']).split('\n'),
    changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
    packageJson: json('package.json'),
    lock: json('package-lock.json'),
    env: process.env,
  };
}

async function release() {
  const options = { publish: { type: 'boolean', default: false }, repository: { type: 'string' } };
  const { publish: publishes, repository } = parseArgs({ options }).values;
  if (repository !== undefined) {
    const path = join(root, 'package.json');
    const filled = withRepository(JSON.parse(readFileSync(path, 'utf8')), repository);
    writeFileSync(path, `${JSON.stringify(filled, null, 2)}\n`);
    process.stdout.write('package.json has repository, homepage and bugs; commit it\n');
    return 0;
  }
  const found = checkout();
  const problems = problemsOf(found, publishes);
  for (const problem of problems) process.stderr.write(`release: ${problem}\n`);
  if (problems.length > 0) return 1;
  const { version } = found.packageJson;
  const commit = git(['rev-parse', 'HEAD']);
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund']);
  run(process.execPath, ['tests/setup/build.mjs']);
  run(process.execPath, ['tests/package/package.mjs']);
  run(process.execPath, ['tests/size.mjs']);
  const changed = git(['status', '--porcelain']);
  if (changed !== '') throw new Error(`the build changed files of the checkout:\n${changed}`);

  const flags = ['--provenance', '--access', 'public', '--ignore-scripts'];
  run('npm', ['publish', ...flags, ...(publishes ? [] : ['--dry-run'])]);
  process.stdout.write(
    publishes
      ? `published wasmquant ${version} of ${commit}\n`
      : `rehearsed wasmquant ${version} of ${commit}: nothing was published\n`,
  );
  return 0;
}

if (process.argv[1] === import.meta.filename) main(release);
