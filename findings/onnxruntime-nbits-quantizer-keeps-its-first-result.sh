#!/usr/bin/env bash
# One model object, given to MatMulNBitsQuantizer twice to compare two settings: 4 bits in blocks of 32, then in blocks of 128 with zero points.
# Seen with onnxruntime 1.32.0, onnx 1.23.2 and onnx-ir 1.1.0 (Python):
#   without onnx-ir, which onnxruntime does not ask pip for, the module cannot be imported
#   the model object that was given has MatMulNBits after process(), so the first result replaced it
#   the second quantizer gives the first result, blocks of 32 without zero points, and raises nothing
# A guess would be that a quantizer copies the model that it is given, as its reading a path does, or that quantizing nothing is an error.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install -q onnx==1.23.2 onnxruntime==1.32.0 >/dev/null 2>&1

cat >try.py <<'PY'
import logging

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

logging.disable(logging.CRITICAL)
weight = np.random.default_rng(1).normal(size=(256, 64)).astype(np.float32)
graph = helper.make_graph(
    [helper.make_node('MatMul', ['x', 'w'], ['y'], name='product')], 'one',
    [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 256])],
    [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 64])], [numpy_helper.from_array(weight, 'w')])
model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid('', 21)])

def described(found):
    (node,) = found.graph.node
    block = [a.i for a in node.attribute if a.name == 'block_size']
    return node.op_type, block[0] if block else None, 'zero points' if len(node.input) > 3 else 'no zero points'

def quantized(block, symmetric):
    quantizer = MatMulNBitsQuantizer(model, block_size=block, is_symmetric=symmetric)
    quantizer.process()
    return described(quantizer.model.model)

print('before', *described(model))
print('first', *quantized(32, True))
print('given', *described(model))
print('second', *quantized(128, False))
PY
if python/bin/python try.py >/dev/null 2>missing; then echo 'without onnx-ir: runs' >seen; else
  sed -n "s/^ModuleNotFoundError: No module named '\(.*\)'/without onnx-ir: \1 is missing/p" missing >seen; fi
python/bin/pip install -q onnx-ir==1.1.0 >/dev/null 2>&1
python/bin/python try.py >>seen
cat seen

expected='without onnx-ir: onnx_ir is missing
before MatMul None no zero points
first MatMulNBits 32 no zero points
given MatMulNBits 32 no zero points
second MatMulNBits 32 no zero points'
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
