"""Tensors of a safetensors folder as they are stored, read without any library of ours or theirs."""
import glob
import json
import os

import ml_dtypes
import numpy as np

DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}


def read_config(folder):
    path = os.path.join(folder, "config.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_header(path):
    """Entries of the tensors by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    header.pop("__metadata__", None)
    return header


def read_file(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in read_header(path).items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def read_folder(folder):
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        for name, tensor in read_file(path).items():
            if name in tensors:
                raise ValueError(f"{name} is in two files")
            tensors[name] = tensor
    return tensors


def write_folder(folder, config, values):
    """A checkpoint of float32 values."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({key: value for key, value in config.items() if key != "quantization_config"}, file)
    header, data, begin = {"__metadata__": {"format": "pt"}}, [], 0
    for name, value in values.items():
        data.append(np.ascontiguousarray(value, np.float32).tobytes())
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [begin, begin + len(data[-1])]}
        begin += len(data[-1])
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(data))
