"""Small graphs whose weights reach their layers through random chains of Identity, Transpose, Cast, Reshape, Squeeze, Unsqueeze and Flatten, and what onnxruntime makes of them.

`python chains.py make FOLDER COUNT SEED` writes NUMBER.onnx and prints the numbers of those in whose chains
elements are put into another order; `python chains.py judge FOLDER`, after each NUMBER.onnx was quantized to NUMBER-HOW.onnx,
prints a line of JSON each: {"name": "NUMBER-HOW", "answer": the worst SQNR of an output in dB, or an error}.
"""
import glob
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
PRODUCTS = ("MatMul", "Gemm", "GemmT", "FusedMatMul", "FusedMatMulT", "Einsum", "EinsumT", "Attention")
LAYERS = (*PRODUCTS, "Conv", "Gather", "tied", "batch")


class Graph:
    """Nodes, initializers and inputs in the making; values know their shape and type."""

    def __init__(self, rng):
        self.rng, self.nodes, self.tensors, self.inputs, self.outputs, self.mixed, self.feeds = rng, [], [], [], [], [], {}

    def pick(self, *items):
        return items[self.rng.integers(len(items))]

    def name(self, prefix):
        return f"{prefix}{len(self.nodes)}_{len(self.tensors)}"

    def constant(self, array, prefix="c"):
        name = self.name(prefix)
        if self.rng.random() < 0.2:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
        else:
            self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator, inputs, prefix="v", domain="", **attributes):
        output = self.name(prefix)
        self.nodes.append(helper.make_node(operator, inputs, [output], name=self.pick("", f"/{output}/{operator}"), domain=domain, **attributes))
        return output

    def cast(self, value, dtype):
        return self.node("Cast", [value], to=TYPES[dtype])

    def reshape(self, value, shape):
        return self.node("Reshape", [value, self.constant(np.array(shape, np.int64))])

    def input(self, name, array):
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        self.feeds[name] = array
        return name


def chain_to(graph, array, dtype):
    """A value equal to `array` in `dtype`: an initializer that went through up to four nodes; and one read on the way, or None."""
    steps = [graph.pick("Identity", "Transpose", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten") for _ in range(graph.rng.integers(0, 5))]
    # Backwards: what each node's input must be.
    stored, stored_dtype, forward = array, dtype, []
    for step in reversed(steps):
        if step == "Transpose" and stored.ndim >= 2:
            last = stored.ndim - 1
            perm = graph.pick([*range(last - 1), last, last - 1], list(range(stored.ndim))[::-1])
            forward.append((step, perm))
            stored = stored.transpose(np.argsort(perm))
        elif step == "Cast":
            forward.append((step, stored_dtype))
            stored_dtype = graph.pick("float32", "float16")
        elif step == "Reshape":
            forward.append((step, stored.shape))
            flat = graph.pick((-1,), (stored.size,), (1, *stored.shape), (stored.shape[0], -1), stored.shape[::-1], (*stored.shape, 1))
            stored = stored.reshape(flat)
        elif step == "Unsqueeze" and 1 in stored.shape:
            axis = stored.shape.index(1)
            forward.append((step, axis))
            stored = stored.squeeze(axis)
        elif step == "Squeeze":
            axis = int(graph.rng.integers(stored.ndim + 1))
            forward.append((step, axis))
            stored = np.expand_dims(stored, axis)
        elif step == "Flatten" and stored.ndim == 2:
            forward.append((step, 1))
            stored = stored.reshape(graph.pick(stored.shape, (*stored.shape, 1)))
        else:
            forward.append(("Identity", None))
    value = graph.constant(np.ascontiguousarray(stored).astype(stored_dtype), "w")
    values = [(value, stored_dtype)]
    for step, what in reversed(forward):
        if step == "Cast":
            value = graph.cast(value, what)
        elif step == "Reshape":
            value = graph.reshape(value, what)
        elif step == "Transpose":
            is_default = what == list(range(len(what)))[::-1]
            value = graph.node(step, [value], **(graph.pick({}, {"perm": what}) if is_default else {"perm": what}))
        elif step in ("Unsqueeze", "Squeeze"):
            value = graph.node(step, [value, graph.constant(np.array([what], np.int64))])
        elif step == "Flatten":
            value = graph.node(step, [value], axis=what)
        else:
            value = graph.node(step, [value])
        values.append((value, what if step == "Cast" else values[-1][1]))
    other = values[graph.rng.integers(len(values))] if graph.rng.random() < 0.25 else None
    if not keeps_track(stored.shape, forward[::-1]):
        graph.mixed.append(value)
    return value, other


def keeps_track(shape, steps):
    """Whether each step gives the elements in the stored order, or with the last two of its dimensions exchanged; these then keep their shape. What
    mixes them otherwise is only seen by folding constants."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    is_ordered = lambda array: np.array_equal(array.ravel(), np.arange(array.size))
    for step, what in steps:
        before = numbers
        numbers = {
            "Transpose": lambda: numbers.transpose(what),
            "Reshape": lambda: numbers.reshape(what),
            "Unsqueeze": lambda: np.expand_dims(numbers, what),
            "Squeeze": lambda: numbers.squeeze(what),
            "Flatten": lambda: numbers.reshape(numbers.shape[0], -1),
        }.get(step, lambda: numbers)()
        if is_ordered(numbers):
            continue
        if numbers.ndim < 2 or not is_ordered(numbers.swapaxes(-1, -2)) or (step != "Transpose" and numbers.shape != before.shape):
            return False
    return True


def layer(graph, kind, value, dtype, k, n):
    """The layer's output from `value` [3, k]; its weight comes through a chain."""
    w = (graph.rng.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32)
    if kind == "Gather":
        table, other = chain_to(graph, w, dtype)
        return graph.node("Gather", [table, graph.constant(graph.rng.integers(0, k, 3))]), other
    if kind == "tied":
        table, other = chain_to(graph, w.T, dtype)
        rows = graph.node("Gather", [table, graph.constant(graph.rng.integers(0, n, 3))])
        head = graph.node("Transpose", [table], perm=[1, 0])
        return graph.node("MatMul", [graph.node("Add", [value, rows]), head]), other
    if kind == "batch":
        batch = np.stack([w, w[::-1]])
        way = graph.pick("MatMul", "Einsum", "EinsumT")
        weights, other = chain_to(graph, batch.swapaxes(-1, -2) if way == "EinsumT" else batch, dtype)
        if way == "MatMul":
            product = graph.node("MatMul", [value, weights])
        else:
            one = graph.reshape(value, (1, 3, k))
            values = graph.node("Concat", [one, one], axis=0)
            product = graph.node("Einsum", [values, weights], equation="bij,bkj->bik" if way == "EinsumT" else "bij,bjk->bik")
        return graph.node("ReduceSum", [product, graph.constant(np.array([0]))], keepdims=0), other
    if kind == "Conv":
        weights, other = chain_to(graph, w.T.reshape(n, k, 1), dtype)
        out = graph.node("Conv", [graph.reshape(value, (3, k, 1)), weights])
        return graph.reshape(out, (3, n)), other
    if kind == "Attention":
        weights, other = chain_to(graph, np.concatenate([w[:, :k], w[:, :k], w[:, :k]], 1) if n >= k else np.tile(w, 3 * k)[:, : 3 * k], dtype)
        bias = graph.constant(np.zeros(3 * k, dtype))
        out = graph.node("Attention", [graph.reshape(value, (1, 3, k)), weights, bias], domain="com.microsoft", num_heads=1)
        return graph.reshape(out, (3, k)), other
    is_transposed = kind.endswith("T")
    weights, other = chain_to(graph, w.T if is_transposed else w, dtype)
    if kind.startswith("Einsum"):
        return graph.node("Einsum", [value, weights], equation="bi,oi->bo" if is_transposed else "bi,io -> bo"), other
    if kind.startswith("Fused"):
        return graph.node("FusedMatMul", [value, weights], domain="com.microsoft", transB=int(is_transposed)), other
    if kind.startswith("Gemm"):
        bias = [graph.constant(np.linspace(-1, 1, n).astype(dtype))] if graph.rng.random() < 0.5 else []
        return graph.node("Gemm", [value, weights, *bias], transB=int(is_transposed)), other
    return graph.node("MatMul", [value, weights]), other


def make(folder, number, seed):
    rng = np.random.default_rng([seed, number])
    graph = Graph(rng)
    dtype = graph.pick("float32", "float32", "float16")
    k = graph.pick(32, 33, 64)
    value = graph.input("x", rng.standard_normal((3, k)).astype(dtype))
    others = []
    for at in range(rng.integers(1, 4)):
        kind = graph.pick(*(PRODUCTS if at == 0 else LAYERS))  # presets leave embeddings
        n = k if kind == "Attention" else graph.pick(16, 32, 47)
        if dtype == "float16" and kind in ("Attention", "FusedMatMul", "FusedMatMulT"):
            kind = "MatMul"
        value, other = layer(graph, kind, value, dtype, k, n)
        k = k if kind in ("Attention",) else n
        if other:
            others.append(other)
    graph.nodes.append(helper.make_node("Identity", [value], ["y"]))
    outputs = [helper.make_tensor_value_info("y", TYPES[dtype], None)]
    for at, (name, other_dtype) in enumerate(others):
        graph.nodes.append(helper.make_node("Neg", [name], [f"o{at}"]))
        outputs.append(helper.make_tensor_value_info(f"o{at}", TYPES[other_dtype], None))
    model = helper.make_model(helper.make_graph(graph.nodes, "g", graph.inputs, outputs, graph.tensors),
                              opset_imports=[helper.make_opsetid("", graph.pick(13, 17, 21)), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 10
    onnx.save(model, os.path.join(folder, f"{number}.onnx"))
    np.savez(os.path.join(folder, f"{number}.npz"), **graph.feeds)
    if graph.mixed:
        print(json.dumps({"mixed": number}))


def outputs_of(path, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def sqnr(wanted, got):
    wanted, got = np.asarray(wanted, np.float64), np.asarray(got, np.float64)
    if wanted.shape != got.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    noise = ((wanted - got) ** 2).sum()
    return 200.0 if noise == 0 else float(10 * np.log10((wanted**2).sum() / noise)) if np.isfinite(noise) else "not finite"


def judge(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*-*.onnx"))):
        stem = os.path.basename(path)[:-5]
        number = stem.split("-")[0]
        feeds = dict(np.load(os.path.join(folder, f"{number}.npz")))
        try:
            wanted = outputs_of(os.path.join(folder, f"{number}.onnx"), feeds)
            worst = [sqnr(a, b) for a, b in zip(wanted, outputs_of(path, feeds))]
            answer = next((w for w in worst if isinstance(w, str)), None) or min(worst)
        except Exception as error:
            answer = str(error).splitlines()[0]
        print(json.dumps({"name": stem, "answer": answer}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for at in range(int(sys.argv[3])):
            make(sys.argv[2], at, int(sys.argv[4]))
    else:
        judge(sys.argv[2])
