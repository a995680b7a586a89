#!/usr/bin/env bash
# A compressed-tensors folder with 4-bit layers and 8-bit layers, loaded by transformers with CompressedTensorsConfig(dequantize=True).
# Seen with transformers 5.24.0, compressed-tensors 0.20.1 and torch 2.13.0 (its CPU build):
#   loaded plainly: the weights of both groups are those that were compressed, but for their rounding
#   dequantize=True: those of the first config group are; those of the second are decoded by the scheme of the first, and nothing is said
# A guess would be that the option decodes each layer by the group that names it, as the plain way does.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install -q torch==2.13.0 >/dev/null 2>&1
python/bin/pip install -q transformers==5.24.0 compressed-tensors==0.20.1 >/dev/null 2>&1

cat >try.py <<'PY'
import warnings
warnings.filterwarnings('ignore')
import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
from transformers import AutoModelForCausalLM, CompressedTensorsConfig, LlamaConfig, LlamaForCausalLM

torch.manual_seed(1)
sizes = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             tie_word_embeddings=False)
model = LlamaForCausalLM(LlamaConfig(**sizes)).eval()
weights = lambda bits: dict(num_bits=bits, type='int', symmetric=True, strategy='group', group_size=32)
config = QuantizationConfig(
    config_groups={
        'four': dict(targets=['re:.*(q|k|v|o|gate|down)_proj$'], weights=weights(4)),
        'eight': dict(targets=['re:.*up_proj$'], weights=weights(8)),
    },
    ignore=['lm_head'], format='pack-quantized', quantization_status='compressed')
original = {name: module.weight.detach().clone() for name, module in model.named_modules() if name.endswith('_proj')}
apply_quantization_config(model, config)
for name, module in model.named_modules():
    if name in original:
        top = 2 ** (module.quantization_scheme.weights.num_bits - 1) - 1
        module.weight_scale.data.copy_(original[name].reshape(*module.weight_scale.shape, 32).abs().amax(-1) / top)
compressor = ModelCompressor.from_pretrained_model(model)
compressor.compress_model(model)
model.save_pretrained('model')
compressor.update_config('model')

def seen(**options):
    loaded = AutoModelForCausalLM.from_pretrained('model', dtype=torch.float32, **options)
    loaded(torch.tensor([[1, 2, 3]]))  # decompresses
    out = {}
    for name, module in loaded.named_modules():
        if name.endswith('gate_proj') or name.endswith('up_proj'):
            x = torch.eye(64)
            out[name.split('.')[-1]] = module(x).T.detach()
    return out

for title, options in (('plain', {}), ('dequantize=True', dict(quantization_config=CompressedTensorsConfig(dequantize=True)))):
    found = seen(**options)
    for name, weight in found.items():
        error = (weight - original['model.layers.0.mlp.' + name]).norm() / original['model.layers.0.mlp.' + name].norm()
        print(title, name, 'right' if error < 0.2 else 'wrong')
PY
python/bin/python try.py 2>/dev/null | tee seen

expected='plain gate_proj right
plain up_proj right
dequantize=True gate_proj right
dequantize=True up_proj wrong'
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
