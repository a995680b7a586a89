"""Tiny models of tests/families, written for MLX by the command in argv[2], and loaded by mlx-lm: its logits are those of transformers from the
original but for the rounding of 8 bits, and those of its own dequantized weights. Prints a line of JSON for each family and preset.

    python3 write.py FOLDER CLI [TEXT]      TEXT: only families whose name has it
"""
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
import mlx.core as mx  # noqa: E402
import mlx.nn as nn  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from hub_configs import hub_folder  # noqa: E402
from mlx_lm.utils import dequantize_model, load_model  # noqa: E402
from run import made  # noqa: E402

# Families of tests/families that mlx-lm has, with settings that it takes for granted.
FAMILIES = {name: {} for name in """llama llama-tied llama-biases llama-llama3rope mistral ministral3 qwen2 qwen3 gemma gemma2 gemma3_text phi phi3
    smollm3 olmo2 olmo3 granite glm4 cohere stablelm starcoder2 nemotron seed_oss exaone4 helium hunyuan_v1_dense ernie4_5 gpt_bigcode lfm2 mamba
    mamba2 falcon_mamba mixtral qwen2_moe qwen3_moe olmoe deepseek_v2 glm4_moe exaone_moe afmoe dots1 mellum minimax minimax_m2 jamba
    nemotron_h solar_open""".split()}
FAMILIES |= {"cohere2": dict(num_hidden_layers=4, layer_types=["sliding_attention"] * 3 + ["full_attention"]),
             "recurrent_gemma": dict(num_key_value_heads=1), "phimoe": dict(attention_bias=True, lm_head_bias=True)}
# Their config.json needs keys that those on the hub have, and save_pretrained does not write.
AS_ON_HUB = "lfm2 mamba2 deepseek_v2 dots1 exaone_moe glm4_moe minimax_m2 solar_open".split()
# The largest relative difference of logits: from the original, which 8 bits explain, and from the file's own weights.
PRESETS = {"mlx_8bit": 0.03, "mlx_4bit": 0.5, "mlx_3bit": 1.0, "mxfp4": 0.6, "mxfp8": 0.15}
OWN_WEIGHTS = 1e-3
TOKENS = [[(7 * i + 3) % 97 for i in range(24)]]


def logits_of(model):
    return np.array(model(mx.array(TOKENS)).astype(mx.float32))


def difference(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def own_loss(folder, original, quantization):
    """The difference that mlx's own quantization of the folder makes: one that changes the choice of experts is larger than any bound."""
    model, _ = load_model(folder)
    nn.quantize(model, **quantization, class_predicate=lambda _, module: hasattr(module, "to_quantized") and
                module.weight.shape[-1] % quantization["group_size"] == 0)
    return difference(logits_of(model), original)


def problem(folder, source, original, bound):
    model, config = load_model(folder)
    layers = [path for path, module in model.named_modules() if type(module).__name__.startswith("Quantized")]
    if not layers:
        return "mlx-lm has no quantized layer"
    logits = logits_of(model)
    far = difference(logits, original)
    own = difference(logits, logits_of(dequantize_model(model)))
    if not far < bound and not far < 1.2 * own_loss(source, original, {key: config["quantization"][key] for key in ("group_size", "bits", "mode")}):
        return f"logits differ by {far:.3g} of their size from the original's"
    if os.environ.get("SHOW"):
        print(far, own)
    return "" if own < OWN_WEIGHTS else f"logits differ by {own:.3g} of their size from those of the dequantized weights"


def main():
    out, command, only = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""
    for name, settings in FAMILIES.items():
        if not any(part in name for part in only.split(",")):
            continue
        folder = made(out, name, settings)
        cls = getattr(transformers, json.loads(Path(folder, "config.json").read_text())["architectures"][0])
        with torch.no_grad():
            original = cls.from_pretrained(folder, dtype=torch.float32)(torch.tensor(TOKENS)).logits.numpy()
        folder = hub_folder(folder) if name in AS_ON_HUB else folder
        for preset, bound in PRESETS.items():
            target = Path(f"{folder}.{preset}")
            result = subprocess.run(["node", command, "quantize", folder, "-o", target, "--force", "--format", "mlx", "--preset", preset],
                                    capture_output=True, text=True, check=False)
            row = {"name": f"{name}, {preset}"}
            if result.returncode:
                row["refused"] = (result.stderr + result.stdout).strip()[-400:]
            else:
                try:
                    row["problem"] = problem(target, Path(folder), original, bound)
                except Exception as error:  # whatever the loader says is the outcome of the case
                    row["problem"] = f"{type(error).__name__}: {error}"[:400]
            print(json.dumps(row), flush=True)


main()
