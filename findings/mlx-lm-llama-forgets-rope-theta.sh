#!/usr/bin/env bash
# A Llama with rope_theta 500000, whose config.json is the one that transformers 5 saves: it nests rope_theta under rope_parameters.
# Seen with mlx-lm 0.32.2 on mlx 0.32.4 (its CPU build) and transformers 5.24.0 (for the config only):
#   config.json as saved:                                the logits of rope_theta 10000, to the bit; nothing is said
#   with rope_theta at the top, where transformers 4 had it:    other logits, those of 500000
# A guess would be that models which load are computed as their config says: mlx-lm's qwen3 does read rope_parameters, its llama does not.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install -q 'mlx[cpu]==0.32.4' mlx-lm==0.32.2 transformers==5.24.0 >/dev/null 2>&1

cat >try.py <<'PY'
import json
import os
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import llama
from mlx_lm.utils import load_model
from transformers import LlamaConfig

sizes = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
folder = Path('model')
LlamaConfig(**sizes, architectures=['LlamaForCausalLM'], rope_parameters={'rope_type': 'default', 'rope_theta': 500000.0}).save_pretrained(folder)
saved = json.loads((folder / 'config.json').read_text())
print('saved at the top:', saved.get('rope_theta'), 'in rope_parameters:', saved['rope_parameters']['rope_theta'])

mx.random.seed(1)
made = llama.Model(llama.ModelArgs(model_type='llama', head_dim=16, rms_norm_eps=1e-6, tie_word_embeddings=False, **sizes))
mx.save_safetensors(str(folder / 'model.safetensors'), dict(tree_flatten(made.parameters())), metadata={'format': 'pt'})

def logits(**more):
    config = {**saved, **more}
    (folder / 'config.json').write_text(json.dumps(config))
    model = load_model(folder)[0]
    return model(mx.array([[i * 7 % 128 for i in range(64)]]))

as_saved = logits()
for theta in (10000.0, 500000.0):
    largest = float(mx.abs(logits(rope_theta=theta) - as_saved).max())
    print('as with', int(theta), 'at the top:', 'equal' if largest == 0 else 'different')
PY
python/bin/python try.py 2>/dev/null | tee seen

expected='saved at the top: None in rope_parameters: 500000.0
as with 10000 at the top: equal
as with 500000 at the top: different'
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
