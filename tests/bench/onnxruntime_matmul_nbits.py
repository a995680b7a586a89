"""onnxruntime's own int4 quantizer of MatMul weights (MatMulNBits, blocks of 128, symmetric) on one thread, in memory: one JSON
line {"gbps"} of float32 input. Fails where onnx or onnxruntime cannot be imported."""
import json
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

try:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer as Quantizer
except ImportError:
    from onnxruntime.quantization.matmul_4bits_quantizer import MatMul4BitsQuantizer as Quantizer

size = 4096
weight = (np.random.default_rng(1).standard_normal((size, size)) * 0.02).astype(np.float32)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])],
    "layer",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, size])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, size])],
    [numpy_helper.from_array(weight, "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
seconds = []
for _ in range(3):
    quantizer = Quantizer(onnx.ModelProto.FromString(model.SerializeToString()), block_size=128, is_symmetric=True)
    start = time.perf_counter()
    quantizer.process()
    seconds.append(time.perf_counter() - start)
print(json.dumps({"gbps": weight.nbytes / min(seconds) / 1e9}))
