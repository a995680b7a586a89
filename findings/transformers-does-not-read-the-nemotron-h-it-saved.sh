#!/usr/bin/env bash
# Nemotron-H: what one release saves, the other loads with a random embedding, although both read the folders that were published.
# Seen with torch 2.13.0:
#   transformers 5.12.1 calls the embedding `backbone.embedding.weight` in the files that it saves; published folders, and the module of both
#   releases, say `embeddings`
#   transformers 5.24.0 loads such a folder without an error: `model.embeddings.weight` is reported as missing, `model.embedding.weight` as
#   unexpected, and the embedding's values are new; what 5.24.0 saves it reads
# A guess would be that a class of the same name reads what it saved some releases ago, or refuses it.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >save.py <<'PY'
import sys
import torch
import transformers
from safetensors import safe_open

config = transformers.NemotronHConfig(vocab_size=40, hidden_size=24, intermediate_size=28, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                                      layers_block_type=["mamba", "mlp"], mamba_num_heads=4, mamba_head_dim=5, n_groups=2, ssm_state_size=6, conv_kernel=3)
model = transformers.NemotronHForCausalLM(config)
with torch.no_grad():
    model.model.embeddings.weight.fill_(0.25)
model.save_pretrained(sys.argv[1])
with safe_open(f"{sys.argv[1]}/model.safetensors", "pt") as file:
    print(transformers.__version__, "saves", [name for name in file.keys() if "embed" in name])
PY
cat >load.py <<'PY'
import sys
import torch
import transformers

model, info = transformers.NemotronHForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32, output_loading_info=True)
kept = bool((model.model.embeddings.weight == 0.25).all())
print(transformers.__version__, "loads", sys.argv[1], "missing", sorted(info["missing_keys"]), "embedding kept" if kept else "embedding lost")
PY
for release in 5.12.1 5.24.0; do
  python3 -m venv "python-$release"
  "python-$release/bin/pip" install -q torch==2.13.0 "transformers==$release" >/dev/null 2>&1
  "python-$release/bin/python" save.py "of-$release" 2>/dev/null
done >seen
for folder in of-5.12.1 of-5.24.0; do python-5.24.0/bin/python load.py "$folder" 2>/dev/null; done >>seen
cat seen

expected="5.12.1 saves ['backbone.embedding.weight']
5.24.0 saves ['backbone.embeddings.weight']
5.24.0 loads of-5.12.1 missing ['model.embeddings.weight'] embedding lost
5.24.0 loads of-5.24.0 missing [] embedding kept"
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
