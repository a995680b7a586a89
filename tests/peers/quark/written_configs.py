"""Configs written by hand: order and kind of names, what Quark's templates give, each algorithm. name: (model, function that makes the QConfig)."""
import torch.nn as nn
from quark.torch import LLMTemplate
from quark.torch.quantization.config import config as quark_config
from quark.torch.quantization.config.algo_configs import get_algo_config, get_supported_algorithm_types
from quark.torch.quantization.config.config import (FP8E4M3PerTensorSpec, Int4PerGroupSpec, Int8PerChannelSpec, Int8PerTensorSpec, QConfig, QLayerConfig,
                                                    Uint4PerGroupSpec, Uint8PerTensorSpec)

ATTENTION = "model.layers.0.self_attn"


def int4():
    return QLayerConfig(weight=Int4PerGroupSpec(ch_axis=-1, group_size=32).to_quantization_spec())


def uint4():
    return QLayerConfig(weight=Uint4PerGroupSpec(ch_axis=1, group_size=64).to_quantization_spec())


def int8():
    return QLayerConfig(weight=Int8PerChannelSpec(ch_axis=0).to_quantization_spec())


def fp8():
    return QLayerConfig(weight=FP8E4M3PerTensorSpec().to_quantization_spec(), input_tensors=FP8E4M3PerTensorSpec().to_quantization_spec())


def inputs_alone():
    return QLayerConfig(input_tensors=Int8PerTensorSpec(is_dynamic=True).to_quantization_spec())


def named(*names):
    """Every name with another config: which of them decides shows."""
    configs = (uint4, int8, fp8, inputs_alone)
    return lambda: QConfig(global_quant_config=int4(), layer_quant_config={name: configs[i % 4]() for i, name in enumerate(names)})


def excluding(*names):
    return lambda: QConfig(global_quant_config=int4(), exclude=list(names))


ORDER = {
    "exact name after a pattern": named("*.q_proj", f"{ATTENTION}.q_proj"),
    "exact name before a pattern": named(f"{ATTENTION}.q_proj", "*.q_proj"),
    "two patterns": named("*.layers.1.*", "*.q_proj"),
    "two patterns, turned": named("*.q_proj", "*.layers.1.*"),
    "everything": named("*", "*.q_proj"),
    "containers": named("model", "model.layers.0", ATTENTION),
    "digits": named("model.layers.1*", "model.layers.[0]*"),
    "sets": named("model.layers.[!1].*", "*[qk]_proj", "*.[!q-v]_proj"),
    "a set that is not closed": named("*[q", "*q_proj"),
    "brackets": named("*[[]*", "*[]]*", "*[.]q_proj"),
    "case": named("*Q_proj", "MODEL.*", "*.K_PROJ"),
    "question marks": named("model.layers.?.self_attn.?_proj", "??_head"),
    "stars in a row": named("model.**.k_proj", "***v_proj"),
    "regular expressions are names": named("re:.*q_proj", "model.layers.\\d+.mlp.up_proj", "^lm_head$"),
    "spaces": named(" lm_head", "lm_head ", "lm_head"),
    "no exclusion": excluding(),
    "excluded head": excluding("lm_head"),
    "excluded container": excluding(ATTENTION, "model.layers.1"),
    "excluded below a container": excluding(f"{ATTENTION}.*", "model.layers.1.*"),
    "excluded patterns": excluding("*down_proj", "*[!0].mlp.?p_proj", "no.such.layer", "*head"),
    "excluded everything": excluding("*"),
    "excluded and named": lambda: QConfig(global_quant_config=int4(), exclude=["*.q_proj"], layer_quant_config={f"{ATTENTION}.q_proj": int8()}),
    "embedding by name": lambda: QConfig(global_quant_config=int4(), layer_quant_config={"model.embed_tokens": int8()}),
    "embedding by pattern": lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*embed*": int8()}),
    "embedding alone": lambda: QConfig(global_quant_config=QLayerConfig(), layer_quant_config={"*embed_tokens": uint4()}),
    "linear layers by type": lambda: QConfig(global_quant_config=int4(), layer_type_quant_config={nn.Linear: int8(), nn.Conv2d: fp8()}),
    "type and name": lambda: QConfig(global_quant_config=int4(), layer_type_quant_config={nn.Linear: int8()}, layer_quant_config={"*mlp*": fp8()}),
    "type without a weight": lambda: QConfig(global_quant_config=int4(), layer_type_quant_config={nn.Linear: inputs_alone()}),
    "name without a weight": lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*.q_proj": inputs_alone()}),
    "name without anything": lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*.q_proj": QLayerConfig()}),
    "nothing": lambda: QConfig(global_quant_config=QLayerConfig()),
    "cache": lambda: QConfig(global_quant_config=int4(), kv_cache_quant_config={
        "*k_proj": QLayerConfig(weight=int8().weight, output_tensors=fp8().input_tensors),
        "*v_proj": QLayerConfig(weight=int8().weight, output_tensors=fp8().input_tensors)}),
    "cache of layers without a weight": lambda: QConfig(global_quant_config=int4(), kv_cache_quant_config={
        "*k_proj": QLayerConfig(output_tensors=fp8().input_tensors)}),
    "cache of excluded layers": lambda: QConfig(global_quant_config=int4(), exclude=["*self_attn*"], kv_cache_quant_config={
        "*k_proj": QLayerConfig(weight=int8().weight, output_tensors=fp8().input_tensors)}),
    "softmax": lambda: QConfig(global_quant_config=int4(), softmax_quant_spec=Uint8PerTensorSpec().to_quantization_spec()),
}
OTHERS = {
    "convolutions by type": ("resnet", lambda: QConfig(global_quant_config=int8(), layer_type_quant_config={nn.Conv2d: fp8()})),
    "convolutions alone": ("resnet", lambda: QConfig(global_quant_config=QLayerConfig(), layer_type_quant_config={nn.Conv2d: int8()})),
    "patches": ("vit", lambda: QConfig(global_quant_config=int8(), layer_quant_config={"*patch_embeddings*": fp8()})),
    "words": ("bert", lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*.word_embeddings": int8()}, exclude=["classifier"])),
    "positions": ("opt", lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*embed_positions": int8(), "*embed_tokens": int8()})),
    "conv1d": ("gpt2", lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*.c_attn": int8()})),
    "experts": ("qwen3_moe", lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*.experts.*.down_proj": fp8()}, exclude=["*.gate"])),
    "one expert": ("qwen3_moe", lambda: QConfig(global_quant_config=int4(), layer_quant_config={"*.experts.1*": int8(), "*.experts.1.up_proj": fp8()})),
}


def helper_classes():
    """Every helper class with its own defaults."""
    from random_specs import HELPERS, helper_spec

    class First:
        """Takes what is required alone, and of that the first value."""

        @staticmethod
        def random():
            return 1.0

        @staticmethod
        def choice(values):
            return values[0]

    for helper in HELPERS:
        try:
            spec = helper_spec(First, helper)
        except ValueError:  # Uint4PerChannelSpec has to be told whether it is dynamic
            spec = helper(**{"ch_axis": 0, "is_dynamic": False}).to_quantization_spec()
        yield f"class {helper.__name__}", "llama", lambda spec=spec: QConfig(global_quant_config=QLayerConfig(weight=spec))


def templates():
    """Every scheme for Llama, without and with a cache of 8 bits; every model's exclusions and algorithms."""
    llama = LLMTemplate.get("llama")
    for scheme in LLMTemplate.get_supported_schemes():
        yield f"scheme {scheme}", "llama", lambda scheme=scheme: llama.get_config(scheme=scheme)
        yield f"scheme {scheme}, cache", "llama", lambda scheme=scheme: llama.get_config(scheme=scheme, kv_cache_scheme="fp8")
    for model in LLMTemplate.list_available():
        yield f"template {model}", "llama", lambda model=model: LLMTemplate.get(model).get_config(scheme="int8")
        for algorithm in get_supported_algorithm_types():
            if get_algo_config(algorithm, model) is not None:
                yield f"template {model}, {algorithm}", "llama", lambda model=model, algorithm=algorithm: LLMTemplate.get(model).get_config(
                    scheme="int4_wo_32", algorithm=algorithm)


def written_configs():
    for name, make in ORDER.items():
        yield name, "llama", make
    for name, (model, make) in OTHERS.items():
        yield name, model, make
    yield from helper_classes()
    yield from templates()


assert quark_config.Config is QConfig  # the old name
