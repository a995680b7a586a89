"""Tiny models of tests/families, converted by mlx-lm, quantized by the command in argv[2], and loaded by transformers: each weight is that of
the original, but for the rounding of the codes. Prints a line of JSON for each family, width and format.

    python3 run.py FOLDER CLI [TEXT]      TEXT: only families whose name has it
"""
import json
import os
import shutil
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../families"))
import any_type  # noqa: E402
import make_families  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from family_inputs import inputs_of  # noqa: E402
from family_tokenizers import TOKENIZER, write_tokenizer  # noqa: E402
from hub_configs import hub_folder  # noqa: E402
from model_outputs import outputs  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

make_families.__dict__.update(torch=torch, transformers=transformers, load_file=load_file, save_file=save_file, any_type=any_type,
                              inputs_of=inputs_of, write_tokenizer=write_tokenizer, outputs=outputs)
# Families of tests/families; settings that mlx-lm takes for granted.
FAMILIES = {name: {} for name in """llama llama-tied mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 smollm3 olmo2 granite glm glm4 cohere
    cohere2 stablelm starcoder2 gpt2-base gptj mixtral qwen2_moe qwen3_moe qwen3_next qwen3_5 qwen3_5_moe-modules granitemoe granitemoehybrid
    deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe glm4_moe_lite glm_moe_dsa olmoe gpt_oss lfm2 mamba mamba2 falcon_mamba jamba falcon_h1 dbrx
    gemma3 gemma4 gemma4_text gemma4_moe llama4 mistral3 mistral4 minimax_m2 nemotron_h afmoe dots1 exaone_moe solar_open mellum laguna
    ernie4_5_moe qwen2_vl qwen3_vl""".split()}
FAMILIES |= {"gpt_neox": dict(intermediate_size=1024), "lfm2_moe": dict(tie_word_embeddings=True), "recurrent_gemma": dict(num_key_value_heads=1),
             "phimoe": dict(attention_bias=True, lm_head_bias=True)}
# Bits of MLX's codes (0: none), and the largest relative difference of a weight that their rounding explains.
WIDTHS = {0: 0.0, 8: 0.008, 4: 0.12}
# Formats of the output, what they add to it: bfloat16, or int8 per channel.
FORMATS = {"fake-quantized": (["--preset", "bfloat16"], 0.004), "compressed-tensors": (["--preset", "int8"], 0.02)}


variant_of = make_families.variant_of


def made(out, name, settings):
    family, variant = variant_of(name)
    variant = {**variant, "config": {**variant.get("config", {}), **settings}}
    make_families.variant_of = lambda _: (family, variant)
    with torch.no_grad():
        make_families.make(out, name)
    return os.path.join(out, name)


def loaded(folder):
    """The class that config.json names, its weights, and what the loader missed."""
    cls = getattr(transformers, json.load(open(f"{folder}/config.json"))["architectures"][0])
    options = {}
    if "quantization_config" in json.load(open(f"{folder}/config.json")):
        options["quantization_config"] = transformers.CompressedTensorsConfig(run_compressed=False)
    model, info = cls.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, **options)
    return cls.__name__, model.state_dict(), {kind: sorted(map(str, names))[:3] for kind, names in info.items() if names}


def fused_experts(weights, key):
    """The parameter of all experts, [experts, inputs, outputs], of a class that has a module for each (compressed-tensors' of Llama 4)."""
    parent, part = key.rsplit(".", 1)
    names = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}.get(part, ())
    count = sum(f"{parent}.{expert}.down_proj.weight" in weights for expert in range(1024))
    if not names or not count:
        return None
    return torch.stack([torch.cat([weights[f"{parent}.{expert}.{name}.weight"] for name in names]).T for expert in range(count)])


def problem(original, out, bound):
    """What is wrong with a folder that was written; empty if nothing is. A class without towers has the weights of the language model."""
    name, weights, missed = loaded(out)
    if missed:
        return f"{name}: {missed}"
    first, reference = original
    for key, value in reference.items():
        if first != name:
            if "language_model" not in key and not key.startswith("lm_head"):
                continue
            key = key.replace("model.language_model.", "model.").replace("language_model.", "")
        found = weights[key] if key in weights else fused_experts(weights, key)
        if found is None or found.shape != value.shape:
            return f"{name}: {key} is {'missing' if found is None else list(found.shape)}"
        if value.is_floating_point():
            error = (found.float() - value).norm() / (value.norm() + 1e-9)
            if error > bound:
                return f"{name}: {key} differs by {error:.3f} of its size"
    return ""


def with_plain_tokenizer(folder):
    """The folder with a tokenizer.json where it has another kind: mlx-lm loads the tokenizer, too, and here weights are judged."""
    if not os.path.exists(f"{folder}/tokenizer.json"):
        for name in os.listdir(folder):
            if name.endswith(".model") or "tokenizer" in name:
                os.remove(f"{folder}/{name}")
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(os.path.join(TOKENIZER, name), f"{folder}/{name}")
    return folder


def converted(folder, bits):
    from mlx_lm import convert

    out = f"{folder}.mlx{bits}"
    convert(with_plain_tokenizer(hub_folder(folder)), out, **(dict(quantize=True, q_bits=bits, q_group_size=32) if bits else {}))
    return out


def main():
    out, command, only = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""
    for name, settings in FAMILIES.items():
        if only not in name:
            continue
        folder = made(out, name, settings)
        for bits, rounding in WIDTHS.items():
            mlx = converted(folder, bits)
            original = loaded(folder)[:2]
            for title, (options, loss) in FORMATS.items():
                target = f"{mlx}.{title}"
                result = subprocess.run(["node", command, "quantize", mlx, "-o", target, "--force", "--format", title, *options],
                                        capture_output=True, text=True, check=False)
                row = {"name": f"{name}, {bits or 'no'} bits, {title}"}
                if result.returncode:
                    row["refused"] = (result.stderr + result.stdout).strip()[-400:]
                else:
                    row["problem"] = problem(original, target, rounding + loss)
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
