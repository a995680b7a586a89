"""Makes tests/files/quantized/compressed_tensors with compressed-tensors itself (pip install compressed-tensors torch safetensors): codes of 3,
5, 6 and 7 bits as its compressor packs them, and in values.safetensors what its own decompression makes of them in float32.
    python3 tests/files/quantized/make_compressed_tensors.py
"""
import json
from importlib.metadata import version
from pathlib import Path

import torch
from compressed_tensors.compressors import PackedQuantizationCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file

folder = Path(__file__).parent / "compressed_tensors"
folder.mkdir(exist_ok=True)
torch.manual_seed(23)
tensors, values, groups = {}, {}, {}
ROWS, GROUP = 32, 32


def add(bits, symmetric, columns):
    strategy = "group" if columns % GROUP == 0 else "channel"
    layer = f"{'int' if symmetric else 'uint'}{bits}.{strategy}"
    arguments = QuantizationArgs(
        num_bits=bits, symmetric=symmetric, strategy=strategy, group_size=GROUP if strategy == "group" else None
    )
    scheme = QuantizationScheme(targets=[layer], weights=arguments, format="pack-quantized")
    shape = (ROWS, columns // GROUP if strategy == "group" else 1)
    state = {"weight": torch.randn(ROWS, columns), "weight_scale": torch.rand(shape) * 4 / 2**bits + 1 / 2**bits}
    if not symmetric:
        state["weight_zero_point"] = torch.randint(-(2 ** (bits - 1)), 2 ** (bits - 1), shape).to(torch.int8)
    packed = PackedQuantizationCompressor.compress(state, scheme)
    for part, tensor in packed.items():
        tensors[f"{layer}.{part}"] = tensor.contiguous()
    values[f"{layer}.weight"] = PackedQuantizationCompressor.decompress(packed, scheme)["weight"].float().contiguous()
    groups[f"group_{len(groups)}"] = json.loads(scheme.model_dump_json(exclude_none=True))


for bits in (3, 5, 6, 7):  # codes that straddle words
    add(bits, True, 43)  # the last word of a row is filled in part
    add(bits, False, 64)

release = version("compressed-tensors")
save_file(tensors, folder / "model.safetensors", {"format": "pt"})
save_file(values, folder / "values.safetensors", {"compressed-tensors": release})
quantization = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups, "version": release}
(folder / "config.json").write_text(
    json.dumps({"model_type": "x", "quantization_config": quantization}, indent=1) + "\n"
)
