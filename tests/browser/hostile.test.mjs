// Every file of the hostile corpus in Chromium: the error, or the tensors, that expected.json says, as in Node and natively.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { root } from '../setup/command.mjs';
import { openLibrary } from './library_page.mjs';

const folder = join(root, 'tests/files/hostile');
const cases = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));

let library;
before(async () => {
  library = await openLibrary({ hostile: folder });
});
after(() => library?.close());

/** What to give to open(): the file; with an index or external data, all that stands beside it. */
function filesOf({ file }) {
  const beside = dirname(file);
  if (beside !== '.') return readdirSync(join(folder, beside)).map((name) => `${beside}/${name}`);
  const data = file.replace(/onnx$/, 'data');
  return file.endsWith('.onnx') && readdirSync(folder).includes(data) ? [file, data] : [file];
}

/** In the page: opens each case, answers with its tensors or its error. */
async function openAll(lists) {
  const quantizer = await window.createQuantizer({ threads: 0 });
  const answers = [];
  for (const names of lists) {
    const files = await Promise.all(
      names.map(async (name) => {
        const response = await fetch(`hostile/${name}`);
        return new File([await response.blob()], name.slice(name.lastIndexOf('/') + 1));
      }),
    );
    try {
      const model = await quantizer.open(files.length > 1 || names[0].includes('/') ? files : files[0]);
      answers.push({
        tensors: model.tensors.map(({ name }) => name).sort(),
        unmapped: model.diagnostics.map(({ where }) => where),
      });
      await model.close();
    } catch (error) {
      const { code, where = '', detail = String(error) } = error;
      answers.push({ code, where, detail });
    }
  }
  const { liveObjects } = quantizer;
  await quantizer[Symbol.asyncDispose]();
  return { answers, liveObjects };
}

test(`${cases.length} hostile files in Chromium`, async () => {
  const { answers, liveObjects } = await library.page.evaluate(openAll, cases.map(filesOf));
  assert.equal(answers.length, cases.length);
  for (const [at, expected] of cases.entries()) {
    const answer = answers[at];
    const told = `${expected.file} (${expected.why}): ${JSON.stringify(answer)}`;
    if (expected.ok) {
      assert.deepEqual(
        answer.tensors,
        [...(expected.opened ?? expected.tensors), ...(expected.unmapped ?? [])].sort(),
        told,
      );
      assert.deepEqual(answer.unmapped, expected.unmapped ?? [], told);
    } else if (expected.missing_file) {
      assert.deepEqual([answer.code, answer.where], ['source-invalid', expected.missing_file], told);
    } else {
      assert.equal(answer.code, expected.code, told);
      assert.ok(answer.detail.includes(expected.message_contains ?? ''), told);
      assert.ok(answer.where.includes(expected.where_contains ?? ''), told);
    }
  }
  assert.equal(liveObjects, 0, 'nothing is left behind');
  assert.deepEqual(await library.page.evaluate(() => window.complaints), []);
});
