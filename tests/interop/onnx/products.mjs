// What ONNX Runtime's own products do on this processor. On x86 without VNNI (AVX2 alone, say) MatMulInteger of uint8 by int8
// adds pairs of products in 16 bits, which saturate; uint8 by uint8 is exact everywhere, and so is onnxruntime-web.
import { graph, model, node, tensor } from '../../node/onnx/model.mjs';
import { ort } from './peers.mjs';

const depth = 64;

/** Whether onnxruntime-node multiplies the largest codes of uint8 by int8 exactly. */
export async function multipliesSignedExactly() {
  const bytes = model(
    graph({
      nodes: [node('MatMulInteger', ['x', 'w'], ['y'])],
      tensors: [tensor('w', 'I8', [depth, 8], new Int8Array(depth * 8).fill(127))],
      inputs: [['x', 'U8', [1, depth]]],
      outputs: [['y', 'I32', [1, 8]]],
    }),
  );
  const session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 3 });
  const { y } = await session.run({ x: new ort.Tensor('uint8', new Uint8Array(depth).fill(255), [1, depth]) });
  await session.release();
  return y.data.every((sum) => sum === 255 * 127 * depth);
}
