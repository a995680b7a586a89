"""Random tensor specs: Quark's helper classes with random arguments, and QTensorConfig with random fields where Quark takes them."""
import dataclasses
import inspect

import torch
from quark.torch.quantization.config import config as quark_config
from quark.torch.quantization.config.config import DataTypeSpec, ProgressiveSpec, QTensorConfig, ScaleQuantSpec, TQTSpec
from quark.torch.quantization.config.type import Dtype, QSchemeType, RoundType, ScaleType, TQTThresholdInitMeth, ZeroPointType
from quark.torch.quantization.observer import OBSERVER_CLASSES, ObserverBase, TQTObserver, UniformScalingObserver
from quark.torch.quantization.tensor_quantize import FakeQuantizeBase

HELPERS = sorted((helper for _, helper in inspect.getmembers(quark_config, inspect.isclass)
                  if issubclass(helper, DataTypeSpec) and "to_quantization_spec" in vars(helper) and helper is not DataTypeSpec),
                 key=lambda helper: helper.__name__)
# Of Quark's list, all but the base classes.
OBSERVERS = sorted(OBSERVER_CLASSES - {ObserverBase, UniformScalingObserver}, key=lambda observer: observer.__name__)
# Blocks lie along the last axis in every format of files.
BLOCK_HELPERS = ("BFP16Spec", "MX6Spec", "MX9Spec", "OCP_MXINT8Spec")
BLOCKS = (Dtype.mx, Dtype.mx6, Dtype.mx9, Dtype.bfp16)
MATRIX = torch.linspace(-1, 2, 128 * 128).reshape(128, 128)
REFUSALS = (AssertionError, AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError)
ROUTER_ROWS = 32  # of the experts in tiny_models.py
FITTING_GROUPS = (16, 32, 64, 128, -1)
# Values of the arguments of helper classes.
ARGUMENTS = {
    "ch_axis": (0, 1, -1),
    "group_size": FITTING_GROUPS,
    "block_size": (16, 32),
    "symmetric": (True, False),
    "is_dynamic": (False, False, True),
    "observer_method": tuple(quark_config.PER_TENSOR_OBSERVER_METHOD_MAP),
    "scale_type": tuple(quark_config.SCALE_TYPE_MAP),
    "round_method": tuple(quark_config.ROUND_METHOD_MAP),
    "zero_point_type": tuple(quark_config.ZERO_POINT_TYPE_MAP),
    "scale_format": ("float32", "e8m0", "e4m3", "e5m3", None),
    "scale_calculation_mode": ("even", "floor", "ceil", None),
}


def has_groups(spec):
    return spec.qscheme in (QSchemeType.per_group, QSchemeType.per_block) or spec.dtype in BLOCKS


def helper_spec(random, helper=None):
    """A helper class with some of its arguments chosen, the others at their defaults."""
    helper = helper or random.choice(HELPERS)
    arguments = {}
    for field in dataclasses.fields(helper):
        is_required = field.default is dataclasses.MISSING
        if is_required or random.random() < 0.4:
            arguments[field.name] = random.choice(ARGUMENTS[field.name])
    if helper.__name__ == "AmdFP4Spec":
        arguments["group_size"] = random.choice((16, 32))
    if helper.__name__ in BLOCK_HELPERS:
        arguments["ch_axis"] = random.choice((1, -1))
    return helper(**arguments).to_quantization_spec()


def block_spec(random, dtype):
    fields = dict(dtype=dtype, ch_axis=random.choice((1, -1)), group_size=8 if dtype == Dtype.bfp16 else random.choice((16, 32)))
    if dtype == Dtype.mx:
        fields["mx_element_dtype"] = random.choice((Dtype.int8, Dtype.fp8_e4m3, Dtype.fp8_e5m2, Dtype.fp6_e3m2, Dtype.fp6_e2m3, Dtype.fp4))
        fields["scale_calculation_mode"] = random.choice(ARGUMENTS["scale_calculation_mode"])
    return QTensorConfig(**fields)


def free_spec(random):
    """A QTensorConfig with random fields."""
    qscheme = random.choice(list(QSchemeType))
    fields = dict(dtype=random.choice(list(Dtype)), observer_cls=random.choice(OBSERVERS), qscheme=qscheme, is_dynamic=random.random() < 0.2,
                  symmetric=random.random() < 0.5, round_method=random.choice(list(RoundType)), scale_type=random.choice(list(ScaleType)))
    if qscheme != QSchemeType.per_tensor or random.random() < 0.2:
        fields["ch_axis"] = random.choice((0, 1, -1, -2))
    if qscheme == QSchemeType.per_group or random.random() < 0.1:
        fields["group_size"] = random.choice(FITTING_GROUPS)
    if qscheme == QSchemeType.per_block or random.random() < 0.1:
        fields["block_size"] = random.choice(((16, 16), (32, 64)))
    if random.random() < 0.3:
        fields["scale_format"] = random.choice(ARGUMENTS["scale_format"])
        fields["scale_calculation_mode"] = random.choice(ARGUMENTS["scale_calculation_mode"])
    if random.random() < 0.3:
        fields["zero_point_type"] = random.choice(list(ZeroPointType))
    if fields["dtype"] in BLOCKS:
        return block_spec(random, fields["dtype"])
    if fields["observer_cls"] is TQTObserver:
        fields["qat_spec"] = TQTSpec(threshold_init_meth=TQTThresholdInitMeth._3SD)
    for optional in ("symmetric", "round_method", "scale_type", "is_dynamic"):
        if random.random() < 0.1:
            fields[optional] = None
    return QTensorConfig(**fields)


def valid(random, make):
    """The first of `make`'s that Quark takes: some it refuses only when it quantizes a matrix."""
    while True:
        try:
            spec = make(random)
            FakeQuantizeBase.get_fake_quantize(spec)(MATRIX)
            return spec
        except REFUSALS:
            continue


def two_stages(random):
    if random.random() < 0.5:
        return ProgressiveSpec(first_stage=helper_spec(random, quark_config.FP8E4M3PerTensorSpec),
                               second_stage=helper_spec(random, quark_config.Int4PerChannelSpec)).to_quantization_spec()
    second = random.choice((quark_config.FP8E4M3PerTensorSpec, quark_config.FP8E5M3PerTensorSpec))
    return ScaleQuantSpec(first_stage=quark_config.FP4PerGroupSpec(ch_axis=-1, group_size=random.choice((16, 32)), is_dynamic=False,
                                                                    scale_type="float32"),
                          second_stage=second(is_dynamic=False, scale_type="float32")).to_quantization_spec()


def weight_spec(random, groups=True):
    """A spec for weights, or a list of two stages; without `groups`, one that convolutions can have."""
    while True:
        if groups and random.random() < 0.08:
            return two_stages(random)
        spec = valid(random, helper_spec if random.random() < 0.6 else free_spec)
        if has_groups(spec) and spec.ch_axis in (0, -2) and spec.group_size is not None:
            spec.group_size = min(spec.group_size, ROUTER_ROWS)
        if groups or not has_groups(spec):
            return spec


def activation_spec(random):
    while True:
        spec = valid(random, helper_spec)
        if spec.qscheme != QSchemeType.per_group or spec.is_dynamic:
            return spec
