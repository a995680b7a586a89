"""Small models as onnxruntime 1.32 quantizes them, and digests of their weights as numpy decodes them (expected.json).

python3 make_quantized.py   needs onnx 1.22, onnxruntime 1.32, onnx_ir, numpy
"""
import copy
import hashlib
import json
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
)

random = np.random.default_rng(57)
here = os.path.dirname(os.path.abspath(__file__))


def weight(name, *shape):
    # Not centred, so that zero points are on both sides of 128.
    values = random.standard_normal(shape) * 0.3 + random.standard_normal((*shape[:-1], 1)) * 0.2
    return numpy_helper.from_array(values.astype(np.float32), name)


def model(nodes, weights, inputs, outputs):
    infos = [[helper.make_tensor_value_info(*row) for row in rows] for rows in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *infos, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


layers = model(
    [
        helper.make_node("Gather", ["table.weight", "ids"], ["e"], name="/table/Gather"),
        helper.make_node("MatMul", ["e", "up"], ["h"], name="/up/MatMul"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "down.weight", "down.bias"], ["y"], name="/down/Gemm", transB=1),
    ],
    [weight("table.weight", 20, 32), weight("up", 32, 48), weight("down.weight", 16, 48), weight("down.bias", 16)],
    [("ids", TensorProto.INT64, ["n"])],
    [("y", TensorProto.FLOAT, ["n", 16])],
)
convolutions = model(
    [
        helper.make_node("Conv", ["x", "a.weight", "a.bias"], ["c"], name="/a/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "b.weight"], ["y"], name="/b/Conv"),
    ],
    [weight("a.weight", 8, 3, 3, 3), weight("a.bias", 8), weight("b.weight", 4, 8, 3, 3)],
    [("x", TensorProto.FLOAT, [1, 3, 8, 8])],
    [("y", TensorProto.FLOAT, [1, 4, 6, 6])],
)
recurrent = model(
    [helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], name="/lstm/LSTM", hidden_size=8, direction="bidirectional")],
    [weight("W", 2, 32, 12), weight("R", 2, 32, 8), weight("B", 2, 64)],
    [("x", TensorProto.FLOAT, [5, 1, 12])],
    [("y", TensorProto.FLOAT, [5, 2, 1, 8])],
)


class Inputs(CalibrationDataReader):
    def __init__(self, source):
        feed = {
            "ids": lambda: random.integers(0, 20, 7),
            "x": lambda: random.standard_normal((1, 3, 8, 8)).astype(np.float32),
        }
        name = source.graph.input[0].name
        self.feeds = iter([{name: feed[name]()} for _ in range(4)])

    def get_next(self):
        return next(self.feeds, None)


def quantized(source, quantize):
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("in.onnx", "out.onnx")]
        onnx.save(source, paths[0])
        quantize(*paths)
        return onnx.load(paths[1])


def dynamic(source, weight_type, per_channel):
    return quantized(
        source, lambda a, b: quantize_dynamic(a, b, weight_type=getattr(QuantType, weight_type), per_channel=per_channel)
    )


def static(source, form, weight_type, per_channel, **options):
    def run(a, b):
        quantize_static(
            a,
            b,
            Inputs(source),
            quant_format=getattr(QuantFormat, form),
            activation_type=QuantType.QInt16 if weight_type == "QInt16" else QuantType.QUInt8,
            weight_type=getattr(QuantType, weight_type),
            per_channel=per_channel,
            extra_options=options,
        )

    return quantized(source, run)


def n_bits(bits, symmetric, block, form="QOperator", operators=("MatMul", "Gather")):
    quantizer = MatMulNBitsQuantizer(
        copy.deepcopy(layers),
        algo_config=DefaultWeightOnlyQuantConfig(
            block_size=block,
            is_symmetric=symmetric,
            bits=bits,
            quant_format=getattr(QuantFormat, form),
            op_types_to_quantize=operators,
        ),
    )
    quantizer.process()
    return quantizer.model.model


def hqq():
    quantizer = MatMulNBitsQuantizer(copy.deepcopy(layers), algo_config=HQQWeightOnlyQuantConfig(block_size=16, bits=4))
    quantizer.process()
    return quantizer.model.model


# ---- values


def along(values, shape, axis):
    """Scales or zero points, broadcast to codes of this shape."""
    values = np.asarray(values)
    if values.size == 1:
        return values.reshape([1] * len(shape))
    if values.ndim == len(shape):  # blocks
        return np.repeat(values, -(-shape[axis] // values.shape[axis]), axis)
    return values.reshape([-1 if d == axis else 1 for d in range(len(shape))])


def linear(codes, scale, zero_point, axis):
    codes = codes.astype(np.float32)
    zero_point = np.zeros(1) if zero_point is None else zero_point.astype(np.float32)
    return (codes - along(zero_point, codes.shape, axis % codes.ndim)) * along(scale, codes.shape, axis % codes.ndim)


def unpacked(data, bits):
    return np.stack([(data >> shift) & (2**bits - 1) for shift in range(0, 8, bits)], -1).reshape(*data.shape[:-1], -1)


def decoded(made):
    """The float values of weights by the names of their codes; None for those that no name here decodes."""
    constants = {tensor.name: tensor for tensor in made.graph.initializer}
    array = lambda name: numpy_helper.to_array(constants[name]) if name in constants else None
    out = {}
    gathers = {node.output[0]: node.input[0] for node in made.graph.node if node.op_type == "Gather"}
    for node in made.graph.node:
        given = list(node.input) + [""] * 12
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        places = {
            "DequantizeLinear": (0, 1, 2, attributes.get("axis", 1)),
            "MatMulInteger": (1, None, 3, -1),
            "ConvInteger": (1, None, 3, 0),
            "QLinearMatMul": (3, 4, 5, -1),
            "QLinearConv": (3, 4, 5, 0),
            "QGemm": (3, 4, 5, 0),
        }
        if node.op_type in places:
            codes, scale, zero_point, axis = places[node.op_type]
            base = given[codes].removesuffix("_quantized").removesuffix("_Q4")
            scale_name = f"{base}_scale" if scale is None else given[scale]
            if given[codes] in constants and array(given[codes]).ndim > 1:
                out[base] = linear(array(given[codes]), array(scale_name), array(given[zero_point]), axis)
            table = gathers.get(given[0])
            if table in constants and constants[table].data_type != TensorProto.FLOAT:
                base = table.removesuffix("_quantized")
                out[base] = linear(array(table), array(f"{base}_scale"), array(f"{base}_zero_point"), 0)
        elif node.op_type == "GatherBlockQuantized":
            out[given[0].removesuffix("_Q4")] = linear(array(given[0]), array(given[2]), array(given[3]), 1)
        elif node.op_type == "MatMulNBits":
            rows, columns, bits, block = (attributes[key] for key in ("N", "K", "bits", "block_size"))
            codes = unpacked(array(given[1]).reshape(rows, -1), bits).astype(np.float32)
            scale = array(given[2]).reshape(rows, -1)
            zero_point = np.full(scale.shape, 2 ** (bits - 1), np.float32)
            if given[3]:
                zero_point = array(given[3]).reshape(rows, -1)
                if zero_point.dtype == np.uint8:
                    zero_point = unpacked(zero_point, bits)[:, : scale.shape[1]].astype(np.float32)
            values = (codes - np.repeat(zero_point, block, 1)) * np.repeat(scale, block, 1)
            out[given[1].rsplit("_", 1)[0]] = values[:, :columns]
        elif node.op_type == "DynamicQuantizeLSTM":
            for name, scale, zero_point in ((given[1], given[8], given[9]), (given[2], given[10], given[11])):
                codes, scale, zero_point = (array(part) for part in (name, scale, zero_point))
                shape = [2, 1, -1]
                values = (codes.astype(np.float32) - zero_point.reshape(shape)) * scale.reshape(shape)
                out[name.removesuffix("_quantized")] = values.transpose(0, 2, 1)
    return out


made = {}
for type_ in ("QInt8", "QUInt8"):
    for per_channel in (False, True):
        name = f"{type_[1:].lower()}_{'channels' if per_channel else 'tensor'}"
        made[f"dynamic_layers_{name}"] = dynamic(layers, type_, per_channel)
        for form in ("QDQ", "QOperator"):
            made[f"{form.lower()}_layers_{name}"] = static(layers, form, type_, per_channel)
    made[f"dynamic_convolutions_{type_[1:].lower()}"] = dynamic(convolutions, type_, False)
    for form in ("QDQ", "QOperator"):
        made[f"{form.lower()}_convolutions_{type_[1:].lower()}"] = static(convolutions, form, type_, True)
made["dynamic_recurrent_tensor"] = dynamic(recurrent, "QInt8", False)
made["dynamic_recurrent_channels"] = dynamic(recurrent, "QInt8", True)
made["qdq_layers_int4"] = static(layers, "QDQ", "QInt4", True)
made["qdq_layers_uint4"] = static(layers, "QDQ", "QUInt4", False)
made["qdq_layers_int16"] = static(layers, "QDQ", "QInt16", True, ActivationSymmetric=True)
for bits in (2, 4, 8):
    for symmetric in (False, True):
        operators = ("MatMul", "Gather") if bits == 4 else ("MatMul",)
        name = f"n_bits_{bits}_{'symmetric' if symmetric else 'asymmetric'}"
        made[name] = n_bits(bits, symmetric, 16, operators=operators)
        if bits == 4:
            made[f"{name}_qdq"] = n_bits(bits, symmetric, 16, "QDQ", ("MatMul",))
made["n_bits_one_block"] = n_bits(4, False, 128, operators=("MatMul",))
made["n_bits_hqq"] = hqq()

expected = {}
for name, result in made.items():
    onnx.save(result, os.path.join(here, f"{name}.onnx"))
    expected[name] = {
        key: {"shape": values.shape, "sha256": hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()}
        for key, values in decoded(result).items()
    }
with open(os.path.join(here, "expected.json"), "w") as file:
    json.dump(expected, file, indent=1)
    file.write("\n")
