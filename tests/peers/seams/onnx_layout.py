"""ONNX: the weight of each branch `<name>.x` to `<name>.y` of a graph, as ONNX Runtime multiplies by it: the outputs for the rows of the identity."""
import numpy as np
import onnxruntime


def decode(path, shapes):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    dtypes = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    feeds = {}
    for entry in session.get_inputs():
        columns = shapes[entry.name.removesuffix(".x")][1]
        feeds[entry.name] = np.eye(columns, dtype=dtypes[entry.type])
    names = [entry.name for entry in session.get_outputs()]
    results = session.run(names, feeds)
    return {name.removesuffix(".y"): result.T.astype(np.float64) for name, result in zip(names, results)}
