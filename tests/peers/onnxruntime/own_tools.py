"""What onnxruntime's own tools make of a model: `python own_tools.py MODEL DYNAMIC.onnx FOUR_BITS.onnx`. Prints a line of JSON: for each file null, or
the reason why the tool wrote nothing.
"""
import json
import os
import sys
import tempfile

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process


def dynamic(model, target):
    """int8, as the documentation says: after its pre-processing, where that works."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = os.path.join(folder, "prepared.onnx")
        try:
            quant_pre_process(model, prepared)
        except Exception:
            prepared = model
        quantize_dynamic(prepared, target, weight_type=QuantType.QInt8)


def four_bits(model, target):
    quantizer = MatMulNBitsQuantizer(onnx.load(model), block_size=32, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(target, False)


if __name__ == "__main__":
    source, *targets = map(os.path.abspath, sys.argv[1:])
    problems = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # shape inference leaves a file where it runs
        for make, target in zip((dynamic, four_bits), targets):
            try:
                make(source, target)
                problems[make.__name__] = None
            except Exception as error:
                problems[make.__name__] = str(error).splitlines()[0][:200]
    print(json.dumps(problems))
