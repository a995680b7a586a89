#!/usr/bin/env python3
"""Tiny random checkpoints of many model families, as transformers' save_pretrained writes them, for tests of what loads.

    python3 make_families.py OUT [FAMILY...]          needs torch, transformers 5, safetensors; without names: all but the rare
    python3 make_families.py --list [--rare]          their names, one a line, without or with those that are made only when named

OUT/<family>/ gets config.json, the weights (F32 unless the variant says otherwise) and, for text models, a tokenizer of the family's kind;
OUT/<family>.inputs.safetensors is what the model is called with. Weights are of the size that keeps activations alive, rows differ in size,
and a few weights are outliers; norms, biases and gates are not at their initial zeros and ones. Prints a line a family.
"""
import json
import os
import re
import shutil
import sys
import warnings

from rows.classifier_families import CLASSIFIERS
from rows.decoder_families import DECODERS
from rows.encoder_families import ENCODERS
from rows.family_variants import VARIANTS, variant_of
from rows.image_families import MORE_IMAGES
from rows.image_text_families import IMAGES_AND_WORDS
from rows.masked_families import ENCODER_DECODERS, MASKED
from rows.media_families import MEDIA
from rows.rare_families import RARE
from rows.sound_families import MORE_SOUND

FAMILIES = {**DECODERS, **ENCODERS, **MASKED, **ENCODER_DECODERS, **CLASSIFIERS, **MEDIA, **MORE_IMAGES, **MORE_SOUND, **IMAGES_AND_WORDS}
NAMES = [*FAMILIES, *VARIANTS]
ANY_TYPE = "any-"
OLD_NAMES = ((r"LayerNorm\.weight$", "LayerNorm.gamma"), (r"LayerNorm\.bias$", "LayerNorm.beta"),
             (r"parametrizations\.weight\.original0$", "weight_g"), (r"parametrizations\.weight\.original1$", "weight_v"))


def scale_of(name, parameter):
    """Standard deviation that keeps activations near 1, or None for what stays as the class initialized it."""
    fan_in = parameter[0].numel() if parameter.dim() != 3 or "conv" in name else parameter.shape[-1]
    is_large = parameter.dim() == 2 and parameter.std() > 2 * fan_in**-0.5 and parameter.std() > 0.5  # A_log of Mamba
    if is_large and "emb" not in name:
        return None
    if "bbox_embed" in name:  # differences to a box, of which a class may take the exponential
        return 0.2 * fan_in**-0.5
    return 0.5 if "embed" in name or ".wte." in name or name.startswith("shared") else fan_in**-0.5


def shake(model):
    """Initial weights are all alike and small: make activations count, rows differ, and some weights outliers."""
    generator = torch.Generator().manual_seed(1)

    def noise(shape):
        return torch.randn(shape, generator=generator)

    for name, parameter in model.named_parameters():
        if parameter.dim() >= 2:
            scale = scale_of(name, parameter)
            if scale is None:
                continue
            values = noise(parameter.shape) * scale * torch.exp(0.3 * noise((parameter.shape[0],) + (1,) * (parameter.dim() - 1)))
            outliers = torch.rand(parameter.shape, generator=generator) < 0.002
            parameter.copy_(torch.where(outliers, values * 3, values))
        elif parameter.numel() > 1:
            low, high = parameter.min(), parameter.max()
            if low == high == 1:
                parameter.mul_(1 + 0.2 * noise(parameter.shape))
            elif low == high == 0:
                parameter.copy_(0.1 * noise(parameter.shape))


def rename(folder, name_of):
    path = os.path.join(folder, "model.safetensors")
    save_file({name_of(name): tensor for name, tensor in load_file(path).items()}, path, metadata={"format": "pt"})


def store_as_mxfp4(folder):
    """Experts [number, in, out] become random blocks of 32 inputs, in the order of gpt-oss."""
    path, config_path = os.path.join(folder, "model.safetensors"), os.path.join(folder, "config.json")
    generator, stored = torch.Generator().manual_seed(3), {}
    for name, tensor in load_file(path).items():
        if name.endswith(("gate_up_proj", "down_proj")):
            experts, inputs, outputs = tensor.shape
            shape = (experts, outputs, inputs // 32)
            stored[name + "_blocks"] = torch.randint(0, 256, (*shape, 16), generator=generator, dtype=torch.uint8)
            stored[name + "_scales"] = torch.randint(118, 124, shape, generator=generator, dtype=torch.uint8)
        else:
            stored[name] = tensor
    save_file(stored, path, metadata={"format": "pt"})
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                                                                         "model.embed_tokens", "lm_head"]}
    with open(config_path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)


def store_as_jina_bert(folder, is_code):
    """BERT's weights by the names of jina-embeddings-v2, whose gates are as its first matrix with rows in another order."""
    path, config_path = os.path.join(folder, "model.safetensors"), os.path.join(folder, "config.json")
    stored = {}
    first, second, norm = ("up_gated_layer", "down_layer", "layer_norm_2") if is_code else ("gated_layers", "wo", "mlp.layernorm")
    for name, tensor in load_file(path).items():
        layer = re.sub(r"(?<=layer\.\d\.).*", "", name)
        if "position_embeddings" in name or name.endswith("intermediate.dense.bias"):
            continue
        if name.endswith("intermediate.dense.weight"):
            stored[f"{layer}mlp.{first}.weight"] = torch.cat([tensor, tensor.flip(0)])
        elif "attention" not in name and ".output.dense" in name:
            stored[name.replace("output.dense", f"mlp.{second}")] = tensor
        elif "attention" not in name and ".output.LayerNorm" in name:
            stored[name.replace("output.LayerNorm", norm)] = tensor
        else:
            stored[name] = tensor
        if is_code and "attention.output.LayerNorm" in name:
            kind = name.rpartition(".")[2]
            for more in ("layer_norm_1", "attention.self.layer_norm_q", "attention.self.layer_norm_k"):
                stored[f"{layer}{more}.{kind}"] = tensor.roll(len(more))
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, path, metadata={"format": "pt"})
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    config |= dict(architectures=["JinaBertForMaskedLM"], position_embedding_type="alibi", feed_forward_type="geglu", emb_pooler="mean")
    with open(config_path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)


def write(model, folder, variant):
    names = variant.get("names")
    if variant.get("own_head"):
        model.config.tie_word_embeddings = False
    shard = {"max_shard_size": variant["shard_bytes"]} if "shard_bytes" in variant else {}
    model.save_pretrained(folder, save_original_format=names != "modules", **shard)
    if variant.get("jina_bert"):
        store_as_jina_bert(folder, variant["jina_bert"] == "code")
    if variant.get("mxfp4"):
        store_as_mxfp4(folder)
    if names == "base":
        rename(folder, lambda name: name.removeprefix(model.base_model_prefix + "."))
    if names == "old":
        def old(name):
            for pattern, replacement in OLD_NAMES:
                name = re.sub(pattern, replacement, name)
            return name

        rename(folder, old)


def build(family, variant):
    """(model, kind of its inputs or None) of a row of the tables, or of `any-TYPE`."""
    if family.startswith(ANY_TYPE):
        model_type = family.removeprefix(ANY_TYPE)
        return any_type.build(model_type), None
    model_class, model_type, settings, kind = FAMILIES[family]
    config = transformers.AutoConfig.for_model(model_type, **json.loads(json.dumps({**settings, **variant.get("config", {})})))
    return getattr(transformers, model_class)(config).float().eval(), kind


def make(out, name):
    family, variant = variant_of(name)
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(0)
    model, kind = build(family, variant)
    if variant.get("own_head"):
        model.lm_head.weight = torch.nn.Parameter(0.1 * torch.randn(model.lm_head.weight.shape))
    shake(model)
    inputs = inputs_of(kind or any_type.inputs_for(model))
    first = outputs(model, inputs)[0]
    if not (torch.isfinite(first) | (first == -torch.inf)).all():  # detectors by words give minus infinity where there is no word
        raise ValueError("the output is not finite")
    write(model.to(getattr(torch, variant.get("dtype", "float32"))), folder, variant)
    if "input_ids" in inputs:
        write_tokenizer(folder, family)
    save_file(inputs, os.path.join(out, name + ".inputs.safetensors"))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return f"{parameters:>9} parameters  {type(model).__name__}  output {tuple(first.shape)}, deviation {first.std():.3g}"


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or [name for name in NAMES if name not in RARE]
    os.makedirs(out, exist_ok=True)
    failed = 0
    for name in wanted:
        try:
            with torch.no_grad():
                print(f"{name:24} {make(out, name)}", flush=True)
        except Exception as error:  # of a class of transformers: the other families are made
            failed += 1
            print(f"{name:24} NOT MADE {type(error).__name__}: {str(error)[:300]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print("\n".join(name for name in NAMES if name not in RARE or "--rare" in sys.argv))
        sys.exit(0)
    warnings.filterwarnings("ignore")
    os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
    import torch
    import transformers
    from safetensors.torch import load_file, save_file

    import any_type
    from family_inputs import inputs_of
    from family_tokenizers import write_tokenizer
    from model_outputs import outputs

    main()
