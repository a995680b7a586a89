#!/usr/bin/env bash
# One MatMulNBits node of 8 bits, in blocks of 256 and of 512: the documentation of the operator asks for a power of two of at least 16.
# Seen with onnxruntime 1.32.0 (Python) and onnxruntime-web 1.30.0 (its WebAssembly build, in Node):
#   onnxruntime      256: runs    512: runs
#   onnxruntime-web  256: runs    512: the session is refused
# A guess would be that one operator takes the same attributes in both builds of one runtime.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv, and Node 20 or newer.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install -q onnx==1.23.2 onnxruntime==1.32.0 numpy >/dev/null 2>&1
echo '{"private": true, "type": "module"}' >package.json
npm install --no-audit --no-fund --ignore-scripts --loglevel error onnxruntime-web@1.30.0 >/dev/null

cat >make.py <<'PY'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper

columns, rows = 1024, 8
for block in (256, 512):
    count = columns // block
    codes = np.full((rows, count, block), 129, np.uint8)  # the zero point is 128, so each weight is 1
    node = helper.make_node('MatMulNBits', ['x', 'codes', 'scales'], ['y'], domain='com.microsoft',
                            K=columns, N=rows, bits=8, block_size=block)
    graph = helper.make_graph(
        [node], 'one', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, columns])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, rows])],
        [numpy_helper.from_array(codes, 'codes'), numpy_helper.from_array(np.ones(rows * count, np.float32), 'scales')])
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid('', 21), helper.make_opsetid('com.microsoft', 1)])
    onnx.save(model, f'{block}.onnx')
    session = onnxruntime.InferenceSession(f'{block}.onnx', providers=['CPUExecutionProvider'])
    y = session.run(None, {'x': np.ones((1, columns), np.float32)})[0]
    print('onnxruntime', block, 'runs' if np.all(y == columns) else f'gives {y[0, 0]}')
PY
python/bin/python make.py | tee seen

cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import * as ort from 'onnxruntime-web';
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'fatal';
for (const block of [256, 512]) {
  try {
    const session = await ort.InferenceSession.create(readFileSync(`${block}.onnx`), { executionProviders: ['wasm'] });
    const x = new ort.Tensor('float32', new Float32Array(1024).fill(1), [1, 1024]);
    const { y } = await session.run({ x });
    console.log('onnxruntime-web', block, y.data.every((value) => value === 1024) ? 'runs' : `gives ${y.data[0]}`);
  } catch (error) {
    console.log('onnxruntime-web', block, 'refused:', String(error.message ?? error).split('\n')[0]);
  }
}
JS
node run.mjs | tee -a seen

expected='onnxruntime 256 runs
onnxruntime 512 runs
onnxruntime-web 256 runs
onnxruntime-web 512 refused'
if [ "$(sed 's/ refused.*/ refused/' seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
