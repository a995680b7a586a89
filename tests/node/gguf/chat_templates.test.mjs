// Chat templates of a folder in its GGUF file, whichever of their places they are in. What is expected is what gguf-py 0.19 writes of the
// same folders (SpecialVocab, add_to_gguf).
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const named = (name, template) => ({ name, template });
const config = (chat_template) => ({ 'tokenizer_config.json': { chat_template } });
const jinja = { 'chat_template.jinja': 'J' };
const more = { 'additional_chat_templates/tool_use.jinja': 'T', 'additional_chat_templates/rag-2.jinja': 'R' };
const json = (chat_template) => ({ 'chat_template.json': { chat_template } });
const list = [named('default', 'D'), named('tool_use', 'T')];

/** [files, templates by key behind tokenizer.chat_template, whether a note says what is left]. */
const cases = {
  none: [{}, {}],
  'a text of tokenizer_config.json': [config('C'), { '': 'C' }],
  'a list of tokenizer_config.json': [config(list), { '': 'D', '.tool_use': 'T' }],
  'a list without default': [config([named('tool_use', 'T')]), { '.tool_use': 'T' }],
  'odd names': [config([named('a b-é/c', 'O'), named('', 'E'), named('a_b-__c', 'P')]), { '.a_b___c': 'P' }],
  'chat_template.jinja': [jinja, { '': 'J' }],
  'chat_template.jinja with named ones': [
    { ...jinja, ...more },
    { '': 'J', '.rag_2': 'R', '.tool_use': 'T' },
  ],
  'a text of chat_template.json': [json('S'), { '': 'S' }],
  'a list of chat_template.json': [json(list), { '': 'D', '.tool_use': 'T' }],
  'jinja precedes json': [{ ...jinja, ...json('S') }, { '': 'J' }],
  'the config precedes all': [{ ...config('C'), ...jinja, ...more, ...json('S') }, { '': 'C' }],
  'null in the config': [{ ...config(null), ...jinja }, {}, true],
  'a number in the config': [{ ...config(7), ...jinja }, {}, true],
  'named ones alone': [more, {}, true],
};

for (const [what, [files, wanted, isSaid = false]] of Object.entries(cases))
  test(`chat templates: ${what}`, async (t) => {
    const folder = join(scratchFolder(t), 'model');
    cpSync(tinyLlama, folder, { recursive: true });
    const own = JSON.parse(readFileSync(join(folder, 'tokenizer_config.json'), 'utf8'));
    delete own.chat_template;
    const all = { ...files, 'tokenizer_config.json': { ...own, ...files['tokenizer_config.json'] } };
    for (const [path, content] of Object.entries(all)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content));
    }
    const quantizer = await quantizerFor(t);
    const out = memoryStream();
    const model = await modelFor(t, quantizer, folder);
    const { diagnostics } = await quantizer.quantizeModel(model, 'q8_0', { target: out.stream });
    const { metadata } = await modelFor(t, quantizer, out.bytes());
    const key = 'tokenizer.chat_template';
    const found = Object.entries(metadata).filter(([name]) => name === key || name.startsWith(`${key}.`));
    assert.deepEqual(Object.fromEntries(found.map(([name, text]) => [name.slice(key.length), text])), wanted);
    const others = Object.keys(wanted).filter((name) => name !== '').length;
    assert.equal(metadata[`${key}s`], others === 0 ? undefined : `[${others} text]`);
    assert.equal(
      diagnostics.some(({ code }) => code === 'files-left'),
      isSaid,
    );
  });
