// Folders of mlx-lm, which renames and rearranges the tensors of a model. Each case is an original model, and what mlx-lm makes of its
// tensors (mlx_lm/models/*.py, sanitize); the folder must be read as the original. tests/peers/mlx converts with mlx-lm itself.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { parsed, safetensors } from '../written_model.mjs';

const count = (shape) => shape.reduce((a, b) => a * b, 1);
/** Whole numbers, which bfloat16 holds exactly, other ones for each name. */
const tensor = (name, shape) => ({
  dtype: 'F32',
  shape,
  data: Float32Array.from({ length: count(shape) }, (_, i) => ((i * 7 + name.length * 13) % 113) - 50),
});
const weights = (shapes) =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, tensor(name, shape)]));
const changed = ({ data, ...rest }, change) => ({ ...rest, data: data.map(change) });
const withShape = (given, shape) => ({ ...given, shape });

/** Element at [...] of the result is that at `place(...)` of the input. */
function rearranged({ dtype, shape, data }, to, place) {
  const out = new Float32Array(count(to));
  const index = to.map(() => 0);
  for (let i = 0; i < out.length; ++i) {
    const from = place(index);
    out[i] = data[from.reduce((at, k, axis) => at * shape[axis] + k, 0)];
    for (let axis = to.length - 1; axis >= 0 && ++index[axis] === to[axis]; --axis) index[axis] = 0;
  }
  return { dtype, shape: to, data: out };
}
const transposed = (given) => rearranged(given, [given.shape[1], given.shape[0]], ([i, j]) => [j, i]);
const swapped = (given) =>
  rearranged(given, [given.shape[0], given.shape[2], given.shape[1]], ([e, i, j]) => [e, j, i]);
const channelsLast = (given) => {
  const [out, input, ...space] = given.shape;
  return rearranged(given, [out, ...space, input], (at) => [at[0], at.at(-1), ...at.slice(1, -1)]);
};
const stacked = (parts) => ({
  dtype: 'F32',
  shape: [parts.length, ...parts[0].shape],
  data: Float32Array.from(parts.flatMap(({ data }) => [...data])),
});
const rowsOf = (given, first, rows) =>
  rearranged(given, [given.shape[0], rows, given.shape[2]], ([e, i, j]) => [e, first + i, j]);

/** Tensors with the experts below `from` stacked below `to`; names: of a matrix in the original and in MLX. */
function withStacks(tensors, from, to, names) {
  const out = {};
  for (const [name, given] of Object.entries(tensors)) {
    const [parent, rest] = name.split(`.${from}.`);
    if (rest === undefined) {
      out[name] = given;
      continue;
    }
    const [expert, part] = rest.split('.');
    if (expert !== '0') continue;
    const all = [0, 1, 2].map((e) => tensors[`${parent}.${from}.${e}.${part}.weight`]);
    out[`${parent}.${to}.${names[part] ?? part}.weight`] = stacked(all);
  }
  return out;
}
const experts = (parent, names) =>
  Object.fromEntries(
    [0, 1, 2].flatMap((e) => [
      [`${parent}.${e}.${names[0]}.weight`, [8, 16]],
      [`${parent}.${e}.${names[1]}.weight`, [8, 16]],
      [`${parent}.${e}.${names[2]}.weight`, [16, 8]],
    ]),
  );
const renamed = (tensors, rename) =>
  Object.fromEntries(Object.entries(tensors).map(([name, given]) => [rename(name), given]));
const each = (tensors, change) =>
  Object.fromEntries(Object.entries(tensors).map(([name, given]) => [name, change(name, given) ?? given]));

const layer = 'model.layers.0';
const plain = ['gate_proj', 'up_proj', 'down_proj'];
const swiglu = ['w1', 'w3', 'w2'];
const swigluNames = { w1: 'gate_proj', w3: 'up_proj', w2: 'down_proj' };
const attention = { [`${layer}.self_attn.q_proj.weight`]: [16, 16], [`${layer}.input_layernorm.weight`]: [16] };
const fused = (name) => ({ [`${name}.gate_up_proj`]: [3, 16, 16], [`${name}.down_proj`]: [3, 16, 8] });
const halves = (tensors, from, to, turn = (given) => given) => {
  const { [`${from}.gate_up_proj`]: both, [`${from}.down_proj`]: down, ...rest } = tensors;
  return {
    ...rest,
    [`${to}.gate_proj.weight`]: rowsOf(turn(both), 0, 8),
    [`${to}.up_proj.weight`]: rowsOf(turn(both), 8, 8),
    [`${to}.down_proj.weight`]: turn(down),
  };
};

/** family: [class, original tensors by shape, what mlx-lm does, more of config.json]. */
const cases = {
  mixtral: [
    'MixtralForCausalLM',
    { ...attention, ...experts(`${layer}.block_sparse_moe.experts`, swiglu) },
    (all) => withStacks(all, 'block_sparse_moe.experts', 'block_sparse_moe.switch_mlp', swigluNames),
  ],
  lfm2_moe: [
    'Lfm2MoeForCausalLM',
    {
      ...experts('model.layers.1.feed_forward.experts', swiglu),
      [`${layer}.feed_forward.w1.weight`]: [8, 16],
      [`${layer}.conv.conv.weight`]: [16, 1, 3],
    },
    (all) =>
      each(
        renamed(withStacks(all, 'feed_forward.experts', 'feed_forward.switch_mlp', swigluNames), (name) =>
          name.replace('.w1.', '.gate_proj.'),
        ),
        (name, given) => (name.includes('conv.conv') ? channelsLast(given) : undefined),
      ),
  ],
  qwen3_next: [
    'Qwen3NextForCausalLM',
    {
      ...attention,
      'model.norm.weight': [16],
      [`${layer}.linear_attn.norm.weight`]: [8],
      [`${layer}.linear_attn.conv1d.weight`]: [8, 1, 4],
      ...experts(`${layer}.mlp.experts`, plain),
    },
    (all) =>
      each(withStacks(all, 'mlp.experts', 'mlp.switch_mlp', {}), (name, given) =>
        name.endsWith('conv1d.weight')
          ? channelsLast(given)
          : /(input_layernorm|model\.norm)\.weight$/.test(name)
            ? changed(given, (x) => x + 1)
            : undefined,
      ),
  ],
  deepseek_v3: [
    'DeepseekV3ForCausalLM',
    {
      ...attention,
      [`${layer}.self_attn.kv_b_proj.weight`]: [2 * (3 + 5), 6],
      ...experts(`${layer}.mlp.experts`, plain),
    },
    (all) => {
      const { [`${layer}.self_attn.kv_b_proj.weight`]: both, ...rest } = withStacks(
        all,
        'mlp.experts',
        'mlp.switch_mlp',
        {},
      );
      return {
        ...rest,
        [`${layer}.self_attn.embed_q.weight`]: rearranged(both, [2, 6, 3], ([h, l, k]) => [h * 8 + k, l]),
        [`${layer}.self_attn.unembed_out.weight`]: rearranged(both, [2, 5, 6], ([h, v, l]) => [h * 8 + 3 + v, l]),
      };
    },
  ],
  dots1: [
    'Dots1ForCausalLM',
    { ...attention, ...experts(`${layer}.mlp.experts`, plain) },
    (all) => withStacks(all, 'mlp.experts', 'mlp.experts', {}),
  ],
  nemotron_h: [
    'NemotronHForCausalLM',
    Object.fromEntries(
      [0, 1, 2].flatMap((e) => [
        [`backbone.layers.0.mixer.experts.${e}.up_proj.weight`, [8, 16]],
        [`backbone.layers.0.mixer.experts.${e}.down_proj.weight`, [16, 8]],
      ]),
    ),
    (all) => withStacks(all, 'mixer.experts', 'mixer.switch_mlp', { up_proj: 'fc1', down_proj: 'fc2' }),
  ],
  granitemoe: [
    'GraniteMoeForCausalLM',
    {
      [`${layer}.block_sparse_moe.input_linear.weight`]: [3, 16, 16],
      [`${layer}.block_sparse_moe.output_linear.weight`]: [3, 16, 8],
    },
    (all) =>
      halves(
        renamed(all, (name) =>
          name.replace('input_linear.weight', 'gate_up_proj').replace('output_linear.weight', 'down_proj'),
        ),
        `${layer}.block_sparse_moe`,
        `${layer}.block_sparse_moe.switch_mlp`,
      ),
  ],
  llama4_text: [
    'Llama4ForCausalLM',
    each(fused(`${layer}.feed_forward.experts`), (_, shape) => [shape[0], shape[2], shape[1]]),
    (all) => halves(all, `${layer}.feed_forward.experts`, `${layer}.feed_forward.experts`, swapped),
  ],
  gpt_oss: [
    'GptOssForCausalLM',
    {
      [`${layer}.mlp.experts.gate_up_proj`]: [3, 8, 12],
      [`${layer}.mlp.experts.gate_up_proj_bias`]: [3, 12],
      [`${layer}.mlp.experts.down_proj`]: [3, 6, 8],
    },
    ({ [`${layer}.mlp.experts.gate_up_proj`]: both, [`${layer}.mlp.experts.gate_up_proj_bias`]: bias, ...rest }) =>
      Object.fromEntries([
        ...['gate_proj', 'up_proj'].flatMap((part, k) => [
          [`${layer}.mlp.experts.${part}.weight`, rearranged(both, [3, 6, 8], ([e, i, j]) => [e, j, 2 * i + k])],
          [`${layer}.mlp.experts.${part}.bias`, rearranged(bias, [3, 6], ([e, i]) => [e, 2 * i + k])],
        ]),
        [`${layer}.mlp.experts.down_proj.weight`, swapped(rest[`${layer}.mlp.experts.down_proj`])],
      ]),
  ],
  dbrx: [
    'DbrxForCausalLM',
    {
      'transformer.wte.weight': [16, 8],
      'transformer.blocks.0.ffn.experts.mlp.w1': [3 * 8, 16],
      'transformer.blocks.0.ffn.experts.mlp.w2': [3 * 8, 16],
    },
    ({ 'transformer.wte.weight': embedding, ...all }) => {
      const parts = [0, 1, 2].flatMap((e) => {
        const of = (name) =>
          rearranged(all[`transformer.blocks.0.ffn.experts.mlp.${name}`], [8, 16], ([i, j]) => [e * 8 + i, j]);
        const module = `transformer.blocks.0.ffn.experts.${e}`;
        return [
          [`${module}.w1.weight`, of('w1')],
          [`${module}.w2.weight`, transposed(of('w2'))],
        ];
      });
      return { 'transformer.wte.weight': embedding, ...Object.fromEntries(parts) };
    },
  ],
  falcon_h1: [
    'FalconH1ForCausalLM',
    {
      'model.embed_tokens.weight': [16, 8],
      [`${layer}.self_attn.k_proj.weight`]: [8, 8],
      [`${layer}.mamba.in_proj.weight`]: [2 * 4 + 2 * 3 + 2, 8],
      [`${layer}.mamba.conv1d.weight`]: [10, 1, 4],
    },
    (all) =>
      each(all, (name, given) => {
        if (name.includes('conv1d')) return channelsLast(given);
        if (name.includes('embed_tokens')) return changed(given, (x) => x * 4);
        if (name.includes('k_proj')) return changed(given, (x) => x * 0.5);
        const row = [1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 0.5, 0.5];
        return changed(given, (x, i) => x * 2 * row[Math.floor(i / 8)]);
      }),
    {
      embedding_multiplier: 4,
      attention_in_multiplier: 0.5,
      ssm_in_multiplier: 2,
      ssm_multipliers: [1, 2, 4, 8, 0.5],
      mamba_d_ssm: 4,
      mamba_n_heads: 2,
    },
  ],
  gpt2: [
    'GPT2LMHeadModel',
    { 'transformer.h.0.attn.c_attn.weight': [8, 24], 'transformer.h.0.ln_1.weight': [8] },
    (all) =>
      each(
        renamed(all, (name) => name.replace('transformer.', 'model.')),
        (name, given) => (name.includes('c_attn') ? transposed(given) : undefined),
      ),
  ],
  gpt_neox: [
    'GPTNeoXForCausalLM',
    {
      'gpt_neox.layers.0.mlp.dense_h_to_4h.weight': [16, 8],
      'gpt_neox.embed_in.weight': [16, 8],
      'embed_out.weight': [16, 8],
    },
    (all) =>
      renamed(all, (name) =>
        (name.startsWith('embed_out') ? `model.${name}` : name.replace('gpt_neox.', 'model.')).replace(
          'model.layers',
          'model.h',
        ),
      ),
  ],
  apertus: [
    'ApertusForCausalLM',
    { ...attention, [`${layer}.mlp.act_fn.alpha_p`]: [1] },
    (all) => each(all, (name, given) => (name.includes('alpha_p') ? withShape(given, []) : undefined)),
  ],
  qwen2_vl: [
    'Qwen2VLForConditionalGeneration',
    { ...attention, 'visual.patch_embed.proj.weight': [8, 3, 2, 4, 4], 'visual.blocks.0.attn.proj.weight': [8, 8] },
    (all) =>
      each(
        renamed(all, (name) =>
          name.startsWith('visual.') ? name.replace('visual', 'vision_tower') : `language_model.${name}`,
        ),
        (name, given) => (name.includes('patch_embed') ? channelsLast(given) : undefined),
      ),
  ],
};

const mlx = { format: 'mlx' };
function folder(parent, name, tensors, config, metadata) {
  const path = join(parent, name);
  mkdirSync(path);
  writeFileSync(join(path, 'config.json'), JSON.stringify(config));
  writeFileSync(join(path, 'model.safetensors'), safetensors(tensors, metadata));
  return path;
}

async function judge(t, quantizer, original, other) {
  const report = await quantizer.compare(await modelFor(t, quantizer, original), await modelFor(t, quantizer, other));
  assert.deepEqual(
    report.diagnostics.filter(({ code }) => code === 'tensor-not-compared'),
    [],
  );
  assert.ok(report.tensors.length > 0);
  for (const { name, error } of report.tensors) assert.equal(error.maxAbs, 0, name);
}

function floats(dtype, bytes) {
  const { buffer } = bytes.slice();
  if (dtype === 'F32') return new Float32Array(buffer);
  return new Float32Array(Uint32Array.from(new Uint16Array(buffer), (bits) => bits * 65536).buffer);
}

const bfloat16 = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: [] };

for (const [family, [architecture, shapes, sanitize, more]] of Object.entries(cases))
  test(`${family}: a folder of mlx-lm is read as its original, and written so`, async (t) => {
    const quantizer = await quantizerFor(t);
    const scratch = scratchFolder(t);
    const config = { model_type: family, architectures: [architecture], ...more };
    const tensors = weights(shapes);
    const original = folder(scratch, 'original', tensors, config, { format: 'pt' });
    const converted = folder(scratch, 'mlx', sanitize(tensors), config, mlx);
    await judge(t, quantizer, original, converted);
    const target = join(scratch, 'out');
    const model = await modelFor(t, quantizer, converted);
    await quantizer.quantizeModel(model, bfloat16, { target, format: 'fake-quantized' });
    await judge(t, quantizer, original, target);
    const { header, data } = parsed(new Uint8Array(readFileSync(join(target, 'model.safetensors'))));
    const { __metadata__: metadata, ...written } = header;
    assert.equal(metadata.format, 'pt');
    for (const [name, { dtype }] of Object.entries(written))
      assert.deepEqual(floats(dtype, data(name)), tensors[name].data, name);
    assert.deepEqual(
      Object.entries(written)
        .map(([name, { shape }]) => [name, shape])
        .sort(),
      Object.entries(shapes).sort(),
    );
  });

test('a folder without the towers of its class becomes the language model', async (t) => {
  const quantizer = await quantizerFor(t);
  const scratch = scratchFolder(t);
  const text = { model_type: 'gemma3_text', hidden_size: 16, num_hidden_layers: 1 };
  const config = {
    model_type: 'gemma3',
    architectures: ['Gemma3ForConditionalGeneration'],
    text_config: text,
    dtype: 'float32',
  };
  const tensors = renamed(weights(attention), (name) => `language_model.${name}`);
  const model = await modelFor(t, quantizer, folder(scratch, 'mlx', tensors, config, mlx));
  const target = join(scratch, 'out');
  await quantizer.quantizeModel(model, bfloat16, { target, format: 'fake-quantized' });
  const { header } = parsed(new Uint8Array(readFileSync(join(target, 'model.safetensors'))));
  assert.deepEqual(
    Object.keys(header)
      .filter((name) => name !== '__metadata__')
      .sort(),
    Object.keys(attention).sort(),
  );
  const written = JSON.parse(readFileSync(join(target, 'config.json')));
  assert.deepEqual(written, { ...text, architectures: ['Gemma3ForCausalLM'], dtype: 'float32' });
});

const refused = {
  'a family that mlx-lm leaves a tensor out of': ['ernie4_5_moe', attention, /e_score_correction_bias/],
  'a class with towers that has none without': [
    'qwen2_vl',
    { [`language_model.${layer}.mlp.up_proj.weight`]: [8, 8] },
    /towers/,
  ],
  'stacked experts of an unknown family': [
    'some_moe',
    { [`${layer}.mlp.switch_mlp.up_proj.weight`]: [3, 8, 8] },
    /some_moe/,
  ],
  'heads of an unknown family': ['some_mla', { [`${layer}.self_attn.embed_q.weight`]: [3, 8, 8] }, /some_mla/],
  'heads without their other half': [
    'deepseek_v3',
    { [`${layer}.self_attn.embed_q.weight`]: [2, 8, 4] },
    /unembed_out/,
  ],
};
for (const [what, [family, shapes, reason]] of Object.entries(refused))
  test(`refused: ${what}`, async (t) => {
    const quantizer = await quantizerFor(t);
    const path = folder(scratchFolder(t), 'mlx', weights(shapes), { model_type: family }, mlx);
    const model = await modelFor(t, quantizer, path);
    await assert.rejects(
      quantizer.quantizeModel(model, bfloat16, { target: join(path, 'out'), format: 'fake-quantized' }),
      reason,
    );
  });
