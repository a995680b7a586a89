"""Makes tests/files/quantized/gpt_oss: a tiny gpt-oss checkpoint in MXFP4, and in values.safetensors the parameters as
transformers' convert_moe_packed_tensors dequantizes them: in bfloat16, which (checked here) is exact.
    tests/interop/peers.sh run python3 tests/files/quantized/make_gpt_oss.py
"""
import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

folder = Path(__file__).parent / "gpt_oss"
folder.mkdir(exist_ok=True)
torch.manual_seed(17)
config = transformers.GptOssConfig(
    vocab_size=8, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
    num_key_value_heads=1, head_dim=16, num_local_experts=3, num_experts_per_tok=2, dtype="bfloat16",
)
model = transformers.GptOssForCausalLM(config).to(torch.bfloat16)
tensors, values = {}, {}
for name, tensor in model.state_dict().items():
    if not name.endswith(("gate_up_proj", "down_proj")):
        tensors[name] = tensor.contiguous()
        continue
    experts, columns, rows = tensor.shape
    blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
    scales = torch.randint(114, 126, (experts, rows, columns // 32), dtype=torch.uint8)
    tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = blocks, scales
    values[name] = convert_moe_packed_tensors(blocks, scales).contiguous()
    assert values[name].shape == tensor.shape
    assert torch.equal(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32), values[name].float())
save_file(tensors, folder / "model.safetensors", {"format": "pt"})
save_file(values, folder / "values.safetensors", {"transformers": transformers.__version__})
said = json.loads(config.to_json_string())
said["architectures"] = ["GptOssForCausalLM"]
said["quantization_config"] = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
}
(folder / "config.json").write_text(json.dumps(said, indent=1) + "\n")
