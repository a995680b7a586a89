"""Random configs of Quark's Brevitas extension, most of which it takes, and what they are in JSON."""
import dataclasses
import enum

from quark.torch.extensions.brevitas import algos
from quark.torch.extensions.brevitas.config import Config, ParamType, QLayerConfig, QTensorConfig, QuantType
from quark.torch.quantization.config.type import QSchemeType, ScaleType

BEFORE = (
    lambda c: algos.Preprocess(equalize_iterations=c.choice((0, 20)), merge_batch_norm=c.random() < 0.5),
    lambda c: algos.ActivationEqualization(is_layerwise=c.random() < 0.9, alpha=c.choice((0.3, 0.5))),
)
AFTER = (
    lambda c: algos.GPTQ(act_order=c.random() < 0.5),
    lambda c: algos.GPFQ(act_order=c.random() < 0.5, percentage_of_processed_inputs=c.choice((0.5, 1.0))),
    lambda c: algos.GPFA2Q(accumulator_bit_width=c.choice((16, 20))),
    lambda c: algos.CalibrateBatchNorm(),
    lambda c: algos.BiasCorrection(),
)


def tensor_config(c, is_weight, mistakes=0.06):
    """`mistakes`: how often a field has a value that the extension, or Brevitas, has nothing for."""
    def or_mistake(usual, others):
        return c.choice(others) if c.random() < mistakes else c.choice(usual)

    is_float = c.random() < 0.3
    symmetric = or_mistake((True,) if is_float else (True, True, False), (True, False))
    config = dict(
        qscheme=or_mistake((QSchemeType.per_tensor, QSchemeType.per_channel) if is_weight else (QSchemeType.per_tensor,),
                           (QSchemeType.per_channel, QSchemeType.per_group)),
        symmetric=symmetric,
        scale_type=or_mistake((ScaleType.float,) if is_float or not symmetric else (ScaleType.float, ScaleType.pof2),
                              (ScaleType.pof2, ScaleType.float32)),
        quant_type=QuantType.float_quant if is_float else QuantType.int_quant,
        param_type=c.choice((ParamType.stats, ParamType.mse)),
    )
    if is_float:
        e, m = or_mistake(((4, 3), (5, 2), (3, 2), (2, 3), (2, 1), (3, 4), (5, 10), (4, 0), (1, 3)), ((None, 3), (4, None)))
        config.update(exponent_bit_width=e, mantissa_bit_width=m)
        config["bit_width"] = or_mistake((1 + (e or 3) + (m or 0),), (8, 7))
    else:
        config["bit_width"] = or_mistake((2, 3, 4, 5, 6, 7, 8, 9, 12, 15), (16, 1))
    return QTensorConfig(**config)


def random_config(c):
    inputs = tensor_config(c, False) if c.random() < 0.4 else None
    layer = QLayerConfig(
        weight=tensor_config(c, True) if c.random() < 0.97 else None,
        input_tensors=inputs,
        output_tensors=tensor_config(c, False) if c.random() < 0.15 else None,
        bias=QTensorConfig(bit_width=c.choice((8, 16, 24, 32))) if c.random() < (0.3 if inputs else 0.02) else None,
    )
    before = [make(c) for make in BEFORE if c.random() < 0.25]
    after = [make(c) for make in AFTER if c.random() < 0.06]
    return Config(global_quant_config=layer, pre_quant_opt_config=before, algo_config=after)


def as_json(value):
    """The extension has no JSON of its own: fields by name, members of enumerations by name, algorithms by class."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (algos.PreQuantOptConfig, algos.AlgoConfig)):
        return {"name": type(value).__name__, **vars(value)}
    if dataclasses.is_dataclass(value):
        members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: as_json(member) for name, member in members.items() if member is not None}
    return [as_json(member) for member in value] if isinstance(value, list) else value
