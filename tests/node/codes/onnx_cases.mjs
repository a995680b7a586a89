// For each code of ONNX models: a graph and a config that have it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { convolutions, graph, model, node, noise, tensor, twoLayers } from '../onnx/model.mjs';
import { group, quark, weight } from './config_cases.mjs';

const inputs = [['x', 'F32', ['n', 64]]];
const one = (nodes, tensors, outputs, options) => model(graph({ nodes, tensors, inputs, outputs }), options);
const square = tensor('w', 'F32', [64, 64], noise(64 * 64, 1));

/** A product and a convolution, which has no groups. */
function bothKinds() {
  return model(
    graph({
      nodes: [
        node('MatMul', ['x', 'w'], ['y'], { name: '/a/MatMul' }),
        node('Conv', ['i', 'conv.weight'], ['c'], { name: '/conv/Conv' }),
      ],
      tensors: [square, tensor('conv.weight', 'F32', [8, 3, 3, 3], noise(216, 5))],
      inputs: [...inputs, ['i', 'F32', [1, 3, 12, 12]]],
      outputs: [
        ['y', 'F32', ['n', 64]],
        ['c', 'F32', [1, 8, 10, 10]],
      ],
    }),
  );
}

/** x -> Conv -> BatchNormalization. */
function norm() {
  const vectors = ['scale', 'B', 'mean', 'var'];
  const positive = (seed) => noise(8, seed).map((value) => value + 1);
  return model(
    graph({
      nodes: [
        node('Conv', ['x', 'conv.weight'], ['c'], { name: '/conv/Conv' }),
        node('BatchNormalization', ['c', ...vectors], ['y'], { name: '/bn/BatchNormalization' }),
      ],
      tensors: [
        tensor('conv.weight', 'F32', [8, 4, 3, 3], noise(288, 19)),
        ...vectors.map((name, i) => tensor(name, 'F32', [8], positive(20 + i))),
      ],
      inputs: [['x', 'F32', [1, 4, 12, 12]]],
      outputs: [['y', 'F32', [1, 8, 10, 10]]],
    }),
  );
}

export const onnxCases = {
  'onnx-parts': async (c) => {
    const list = ['onnx/model.onnx', 'onnx/encoder.onnx'].map((name) => new File([twoLayers().bytes], name));
    const source = await c.open(list);
    const left = await c.run(list, 'int8');
    return [...source.diagnostics, ...left.report.diagnostics];
  },
  'quantized-already': async (c) => {
    const { bytes } = await c.run(twoLayers().bytes, 'int8');
    return (await c.open(new File([bytes], 'model_q8.onnx'))).diagnostics;
  },
  'opset-raised': (c) =>
    c.plan(one([node('MatMul', ['x', 'w'], ['y'])], [square], [['y', 'F32', ['n', 64]]], { opset: 14 }), 'int4_wo_32', {
      onnx: { qdq: true },
    }),
  // The product with w is quantized, and Relu needs w itself.
  'weight-kept-twice': async (c) => {
    const nodes = [node('MatMul', ['x', 'w'], ['y'], { name: '/a/MatMul' }), node('Relu', ['w'], ['z'])];
    const outputs = [
      ['y', 'F32', ['n', 64]],
      ['z', 'F32', [64, 64]],
    ];
    return (await c.run(one(nodes, [square], outputs), quark(group()))).report.diagnostics;
  },
  // The graph has one layer less than the file.
  'tensors-left': (c) => {
    const folder = c.without('config.json');
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...c.settings(), num_hidden_layers: 3 }));
    return c.plan(folder, 'int8', { format: 'onnx' });
  },
  'int8-instead': (c) => c.plan(convolutions(), 'int4_wo_32'),
  'slow-convolutions': (c) => c.plan(convolutions(), 'int8_dynamic'),
  'kept-in-float': (c) => {
    const spec = group({ dtype: 'int8' });
    return c.plan(bothKinds(), quark(spec, { indivisible_groups: 'fallback' }));
  },
  // In float16.
  'inputs-float': (c) => {
    const half = tensor(
      'w',
      'F16',
      [64, 64],
      Uint16Array.from({ length: 64 * 64 }, (_, i) => 0x3000 + (i % 512)),
    );
    const whole = graph({
      nodes: [node('MatMul', ['x', 'w'], ['y'])],
      tensors: [half],
      inputs: [['x', 'F16', ['n', 64]]],
      outputs: [['y', 'F16', ['n', 64]]],
    });
    return c.plan(model(whole), 'int8_dynamic');
  },
  'inputs-uint8': (c) => c.plan(twoLayers().bytes, 'int8_dynamic'),
  'norms-folded': (c) => c.plan(norm(), quark(weight(), { pre_quant_opt_config: [{ name: 'merge_batch_norm' }] })),
};
