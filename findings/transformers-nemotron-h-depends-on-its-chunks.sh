#!/usr/bin/env bash
# A state space in chunks: `chunk_size` of config.json says how the work is cut, so the outputs should not depend on it. In one release those
# of two families do, as soon as a text is longer than a chunk and no fused kernel is installed, as on every CPU.
# Seen with torch 2.13.0, the same weights and 24 tokens in chunks of 8 and of 64; the largest difference of a logit, logits being up to 2:
#   transformers 5.12.1: NemotronH 4e-3, Zamba2 5e-3, while Mamba2, Bamba, GraniteMoeHybrid and FalconH1 differ by rounding (below 1e-6)
#   transformers 5.24.0: all six differ by rounding only (below 2e-6)
# A guess would be that six copies of one algorithm in one release are the same. Real folders have chunks of 128 or 256 tokens: a short test
# text agrees with any other implementation, and a long one with none.
# Exits 1 when that changes. Needs Python 3.11 or newer with venv.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >try.py <<'PY'
import torch
import transformers

torch.set_grad_enabled(False)
sizes = dict(vocab_size=40, hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4)
mamba = dict(mamba_n_heads=4, mamba_n_groups=2, mamba_d_state=6, mamba_d_conv=3)
heads = dict(num_key_value_heads=2)
families = {
    "NemotronH": ("chunk_size", dict(vocab_size=40, hidden_size=24, intermediate_size=28, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                                     layers_block_type=["mamba", "mlp"], mamba_num_heads=4, mamba_head_dim=5, n_groups=2, ssm_state_size=6, conv_kernel=3)),
    "Zamba2": ("chunk_size", dict(sizes, num_key_value_heads=4, layers_block_type=["mamba", "hybrid"], hybrid_layer_ids=[1], n_mamba_heads=4,
                                  mamba_ngroups=2, mamba_d_state=6)),
    "Mamba2": ("chunk_size", dict(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_heads=4, head_dim=12, n_groups=2, state_size=6, conv_kernel=3)),
    "Bamba": ("mamba_chunk_size", dict(sizes, **heads, **mamba, mamba_d_head=12, attn_layer_indices=[1])),
    "GraniteMoeHybrid": ("mamba_chunk_size", dict(sizes, **heads, **mamba, mamba_d_head=12, layer_types=["mamba", "attention"],
                                                  layers_block_type=["mamba", "attention"], shared_intermediate_size=10, num_local_experts=2,
                                                  num_experts_per_tok=1)),
    "FalconH1": ("mamba_chunk_size", dict(sizes, **heads, **mamba, mamba_d_head=5, mamba_d_ssm=20)),
}

def logits(name, key, chunk, options):
    config = getattr(transformers, f"{name}Config")(**options, **{key: chunk})
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    torch.manual_seed(1)
    for weight in model.parameters():
        weight.copy_(torch.randn_like(weight) * 0.3)
    return model(torch.arange(24)[None], use_cache=False).logits

differing = []
for name, (key, options) in families.items():
    difference = (logits(name, key, 8, options) - logits(name, key, 64, options)).abs().max().item()
    assert difference < 2e-6 or difference > 1e-3, difference
    if difference > 1e-3:
        differing.append(name)
print(transformers.__version__, "depend on the size of their chunks:", ", ".join(differing) or "none")
PY
for release in 5.12.1 5.24.0; do
  python3 -m venv "python-$release"
  "python-$release/bin/pip" install -q torch==2.13.0 "transformers==$release" >/dev/null 2>&1
  "python-$release/bin/python" try.py 2>/dev/null
done | tee seen

expected='5.12.1 depend on the size of their chunks: NemotronH, Zamba2
5.24.0 depend on the size of their chunks: none'
if [ "$(cat seen)" = "$expected" ]; then echo "as stated"; else echo "this has changed"; exit 1; fi
