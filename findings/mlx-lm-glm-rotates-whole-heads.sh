#!/usr/bin/env bash
# A GLM whose config.json says partial_rotary_factor 0.5, the default of its class in transformers: rotary embeddings turn half of each head.
# Seen with mlx-lm 0.32.2 on mlx 0.32.4 (its CPU build) and transformers 5.24.0 (for the config only):
#   partial_rotary_factor 0.5, 0.25 or 1.0, in rope_parameters or at the top: the same logits, to the bit; nothing is said
#   another rope_theta at the top: other logits, so that rotary embeddings do count
# A guess would be that a class which loads every tensor of a checkpoint also computes it: for GLM-4 (model_type glm4) mlx-lm reads the factor,
# for glm it turns whole heads.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install -q 'mlx[cpu]==0.32.4' mlx-lm==0.32.2 transformers==5.24.0 >/dev/null 2>&1

cat >try.py <<'PY'
import json
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import glm
from mlx_lm.utils import load_model
from transformers import GlmConfig

sizes = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             tie_word_embeddings=False)
folder = Path('model')
GlmConfig(**sizes, architectures=['GlmForCausalLM']).save_pretrained(folder)
saved = json.loads((folder / 'config.json').read_text())
print('the default of the class:', saved['rope_parameters']['partial_rotary_factor'])
mx.random.seed(1)
made = glm.Model(glm.ModelArgs.from_dict({**saved, 'rope_theta': 10000.0}))
mx.save_safetensors(str(folder / 'model.safetensors'), dict(tree_flatten(made.parameters())), metadata={'format': 'pt'})

def logits(factor, theta):
    rope = {**saved['rope_parameters'], 'partial_rotary_factor': factor}
    config = {**saved, 'rope_parameters': rope, 'partial_rotary_factor': factor, 'rope_theta': theta}
    (folder / 'config.json').write_text(json.dumps(config))
    return load_model(folder)[0](mx.array([[i * 7 % 128 for i in range(64)]]))

first = logits(0.5, 10000.0)
for factor, theta in ((0.25, 10000.0), (1.0, 10000.0), (0.5, 500000.0)):
    largest = float(mx.abs(logits(factor, theta) - first).max())
    print('factor', factor, 'theta', int(theta), 'equal' if largest == 0 else 'different')
PY
python/bin/python try.py 2>/dev/null | tee seen

expected='the default of the class: 0.5
factor 0.25 theta 10000 equal
factor 1.0 theta 10000 equal
factor 0.5 theta 500000 different'
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
