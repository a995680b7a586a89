// A small ONNX graph with three weights.
import { writeFileSync } from 'node:fs';
import { graph, model, node, tensor } from '../../node/onnx/model.mjs';

/** Values of a graph's weights, and the graph: each is multiplied in a branch of its own, `<name>.x` to `<name>.y`. */
export function writeGraph(path, random) {
  const nodes = [];
  const tensors = [];
  const inputs = [];
  const outputs = [];
  const weights = {};
  for (let index = 0; index < 3; ++index) {
    const name = `layer${index}`;
    const isGemm = random.chance(0.4);
    const [rows, columns] = [1 + random.below(60), random.pick([8, 16, 30, 32, 48, 64, 90, 96, 128, 160])];
    const data = Float32Array.from({ length: rows * columns }, () => random.normal() / 8);
    weights[name] = { dtype: 'F32', shape: [rows, columns], data };
    const stored = isGemm ? data : transposed(data, rows, columns);
    tensors.push(tensor(`${name}.weight`, 'F32', isGemm ? [rows, columns] : [columns, rows], stored));
    const attributes = isGemm ? { transB: 1 } : {};
    nodes.push(
      node(isGemm ? 'Gemm' : 'MatMul', [`${name}.x`, `${name}.weight`], [`${name}.y`], {
        name: `/${name}/op`,
        ...attributes,
      }),
    );
    inputs.push([`${name}.x`, 'F32', [`n${index}`, columns]]);
    outputs.push([`${name}.y`, 'F32', [`n${index}`, rows]]);
  }
  writeFileSync(path, model(graph({ nodes, tensors, inputs, outputs }), { opset: random.pick([13, 17, 21]) }));
  return weights;
}

function transposed(data, rows, columns) {
  const result = new Float32Array(data.length);
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column) result[column * rows + row] = data[row * columns + column];
  return result;
}
