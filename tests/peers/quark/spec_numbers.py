"""What Quark makes of a matrix by random specs: `python spec_numbers.py FOLDER SEED COUNT`.

Writes FOLDER/numbers.safetensors: `matrix`, and as "0", "1", ... what it is after it was quantized and dequantized by each spec, the matrix in
float32, bfloat16 or float16. Prints a line a spec: {"specs": [as Quark writes them, one a stage], "dtype": of the matrix, "values": name}.
"""
import json
import os
import random
import sys

os.environ.update(QUARK_LOG_LEVEL="error", QUARK_DISABLE_COMPILE="1")

import torch
from quark.torch.quantization.tensor_quantize import FakeQuantizeBase
from random_specs import REFUSALS, weight_spec
from safetensors.torch import save_file

SHAPE = (128, 128)
# Half of the specs see float32.
DTYPES = ("float32", "float32", "bfloat16", "float16")


def make_matrix():
    """Rows of different sizes, outliers, a row and a block of zeros, subnormal and huge values far from the rest."""
    generator = torch.Generator().manual_seed(7)
    matrix = torch.randn(SHAPE, generator=generator) * torch.exp(torch.randn((SHAPE[0], 1), generator=generator)) * 0.02
    matrix = torch.where(torch.rand(SHAPE, generator=generator) < 0.002, matrix * 8, matrix)
    matrix[5] = 0
    matrix[:32, 64:96] = 0
    matrix[9] = matrix[9].abs()
    matrix[10] = -matrix[10].abs()
    matrix[11] *= 1e-30
    return matrix


def main(folder, seed, count):
    matrix = make_matrix()
    values = {"matrix": matrix}
    for i in range(int(count)):
        spec = weight_spec(random.Random(f"{seed} {i}"))
        dtype = random.Random(f"{seed} {i} dtype").choice(DTYPES)
        try:
            made = FakeQuantizeBase.get_fake_quantize(spec)(matrix.to(getattr(torch, dtype)))
        except REFUSALS as error:
            print(f"{i}: {error}", file=sys.stderr)
            continue
        values[str(i)] = made.detach().float().contiguous().clone()
        specs = [stage.to_dict() for stage in (spec if isinstance(spec, list) else [spec])]
        print(json.dumps({"specs": specs, "dtype": dtype, "values": str(i)}), flush=True)
    save_file(values, os.path.join(folder, "numbers.safetensors"))


if __name__ == "__main__":
    main(*sys.argv[1:])
