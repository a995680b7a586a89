"""Makes tests/files/quantized/modelopt with NVIDIA ModelOpt itself (pip install nvidia-modelopt torch safetensors): weights
as its export packs them, and in values.safetensors what its own dequantization makes of them in float32.
    python3 tests/files/quantized/make_modelopt.py
"""
import json
from pathlib import Path

import modelopt
import torch
from modelopt.torch.export.quant_utils import from_quantized_weight, to_quantized_weight
from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP4QTensor, MXFP8QTensor, NVFP4QTensor
from safetensors.torch import save_file

folder = Path(__file__).parent / "modelopt"
folder.mkdir(exist_ok=True)
torch.manual_seed(17)
tensors, values = {}, {}
ROWS, COLUMNS = 4, 64


def weight(rows=ROWS, columns=COLUMNS):
    return (torch.randn(rows, columns) * 0.05).bfloat16().float()


def add(name, codes, scale, decoded, **more):
    for part, tensor in {"weight": codes, "weight_scale": scale, **more}.items():
        tensors[f"{name}.{part}"] = tensor.clone()
    values[f"{name}.weight"] = decoded.contiguous()


def amax(w, dim=None):
    return (w.abs().amax() if dim is None else w.abs().amax(dim)).float()


w = weight()
scale = amax(w) / 448
codes = to_quantized_weight(w, scale, "fp8")
decoded = FP8QTensor(w.shape, w.dtype, codes).dequantize(torch.float32, scale=scale)
assert torch.equal(decoded, from_quantized_weight(codes, scale, "fp8", torch.float32))
add("fp8", codes, scale, decoded, input_scale=torch.tensor(0.5))

w = weight()
scale = amax(w, 1) / 448
add("fp8_per_channel", (codes := to_quantized_weight(w, scale, "fp8_pc_pt")), scale, codes.float() * scale[:, None])

w = weight(64, 64)  # blocks of 32, smaller than usual, to keep the file small; scales have four axes, as exported
scale = amax(w.reshape(2, 32, 2, 32), (1, 3))[:, None, :, None] / 448
codes = to_quantized_weight(w, scale, "fp8_pb_wo", block_size=32)
blocks = {-1: 32, -2: 32}
decoded = FP8QTensor(w.shape, w.dtype, codes).dequantize(torch.float32, scale=scale[:, 0, :, 0], block_sizes=blocks)
add("fp8_blocks", codes, scale, decoded)

w = weight()
second = NVFP4QTensor.get_weights_scaling_factor_2(w)
scale = NVFP4QTensor.get_weights_scaling_factor(w, 16, second)[0]
codes = to_quantized_weight(w, scale, "nvfp4", second, 16)
decoded = NVFP4QTensor(w.shape, w.dtype, codes).dequantize(
    torch.float32, scale=scale, double_scale=second, block_sizes={-1: 16}
)
add("nvfp4", codes, scale, decoded, weight_scale_2=second, input_scale=torch.tensor(0.01))
smoothing = (torch.rand(COLUMNS) + 0.5).bfloat16()  # what inputs are multiplied by, and so the weight
add("nvfp4_awq", codes, scale, decoded * smoothing.float(), weight_scale_2=second, pre_quant_scale=smoothing)

w = weight()
quantized, scale = MXFP8QTensor.quantize(w)
decoded = quantized.dequantize(torch.float32, scale=scale)
add("mxfp8", quantized._quantized_data, scale, decoded)

w = weight()
quantized, scale = MXFP4QTensor.quantize(w, block_size=32)
decoded = quantized.dequantize(torch.float32, scale=scale, block_sizes={-1: 32})
add("mxfp4", quantized._quantized_data, scale.reshape(ROWS, -1), decoded)

w = weight()
scale = amax(w.reshape(ROWS, 2, 32), 2) / 7
codes = to_quantized_weight(w, scale, "int4_awq", block_size=32)
rounded = (w / scale.repeat_interleave(32, 1)).round().clamp(-8, 7)
add("int4_awq", codes, scale, rounded * scale.repeat_interleave(32, 1) * smoothing.float(), pre_quant_scale=smoothing)

w = weight()
scale = amax(w, 1) / 127
codes = to_quantized_weight(w, scale, "int8_wo")
add("int8", codes, scale, from_quantized_weight(codes, scale, "int8_wo", torch.float32))
tensors["norm.weight"] = values["norm.weight"] = torch.randn(8)
tensors["self_attn.k_proj.k_scale"] = torch.tensor(0.25)

save_file(tensors, folder / "model.safetensors", {"format": "pt"})
save_file(values, folder / "values.safetensors", {"modelopt": modelopt.__version__})
producer = {"name": "modelopt", "version": modelopt.__version__}
quantization = {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8", "exclude_modules": ["norm"]}
(folder / "hf_quant_config.json").write_text(
    json.dumps({"producer": producer, "quantization": quantization}, indent=1) + "\n"
)
config = {"model_type": "x", "quantization_config": {"quant_method": "modelopt", "producer": producer}}
(folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
