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


def read_file(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
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
