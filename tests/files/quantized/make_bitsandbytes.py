"""Makes tests/files/quantized/bitsandbytes with bitsandbytes itself (pip install bitsandbytes torch safetensors): NF4 and
FP4 weights, with and without double quantization, of even and odd shapes, and LLM.int8 weights; in values.safetensors
what bitsandbytes makes of them in float32.
    python3 tests/files/quantized/make_bitsandbytes.py
"""
import json
from pathlib import Path

import bitsandbytes
import bitsandbytes.functional as bnb
import torch
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from safetensors.torch import save_file

folder = Path(__file__).parent / "bitsandbytes"
folder.mkdir(exist_ok=True)
torch.manual_seed(17)
tensors, values = {}, {}


def add_4bit(name, shape, quant_type, nested, blocksize=64, dtype=torch.bfloat16, storage=torch.uint8):
    weight = (torch.randn(shape) * 0.05).to(dtype)
    codes, state = bnb.quantize_4bit(
        weight, blocksize=blocksize, quant_type=quant_type, compress_statistics=nested, quant_storage=storage
    )
    tensors[f"{name}.weight"] = codes
    for part, tensor in state.as_dict(packed=True).items():
        tensors[f"{name}.weight.{part}"] = tensor
    absmax = state.absmax
    if nested:
        absmax = bnb.dequantize_blockwise(state.absmax, state.state2) + state.offset
    # The backend in torch: that for AVX-512 takes the wrong scales where a row is not whole blocks.
    decoded = _dequantize_4bit_compute.__wrapped__(
        codes.view(torch.uint8).reshape(-1), absmax, state.code, blocksize, shape, torch.float32
    )
    values[f"{name}.weight"] = decoded.contiguous()
    if shape[-1] % blocksize == 0:  # what the weight's own dtype gets is this, rounded to it
        assert torch.equal(bnb.dequantize_4bit(codes, state), decoded.to(dtype))


for quant_type in ("nf4", "fp4"):
    for nested in (False, True):
        add_4bit(f"{quant_type}.{'nested' if nested else 'plain'}", (4, 128), quant_type, nested)
add_4bit("nf4.blocks_across_rows", (6, 96), "nf4", True)
add_4bit("nf4.short_block", (3, 30), "nf4", False, dtype=torch.float16)
add_4bit("nf4.blocks_of_128", (4, 128), "nf4", True, blocksize=128, dtype=torch.float32)
add_4bit("nf4.in_bfloat16", (4, 64), "nf4", True, storage=torch.bfloat16)
add_4bit("nf4.many_blocks", (6, 1376), "nf4", True, blocksize=32)  # 258: their scales have two scales

weight = torch.randn(5, 48) * 0.05
codes, scales, _ = bnb.int8_vectorwise_quant(weight.half())
tensors["int8.weight"], tensors["int8.SCB"] = codes, scales
tensors["int8.weight_format"] = torch.tensor(0, dtype=torch.uint8)
values["int8.weight"] = bnb.int8_vectorwise_dequant(codes, scales)
tensors["int8.bias"] = values["int8.bias"] = torch.randn(5)
tensors["norm.weight"] = values["norm.weight"] = torch.randn(8)
values["nf4.many_blocks.last_row"] = values.pop("nf4.many_blocks.weight")[-1].contiguous()  # to keep the file small
save_file(tensors, folder / "model.safetensors")
save_file(values, folder / "values.safetensors", {"bitsandbytes": bitsandbytes.__version__})
config = {"model_type": "x", "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
(folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
