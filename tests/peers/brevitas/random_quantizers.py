"""Arguments of Brevitas' program for language models that say how weights are quantized, random, and the quantizer that it makes of them."""
from brevitas_examples.common.generative.quantize import WEIGHT_QUANT_MAP, generate_quantizers

# format, precision of scales, method, granularity, type: each that has a quantizer
KINDS = [(weight_format, precision, method, granularity, kind)
         for weight_format, precisions in WEIGHT_QUANT_MAP.items()
         for precision, methods in precisions.items()
         for method, granularities in methods.items()
         for granularity, kinds in granularities.items() for kind in kinds]
# Scales with a sign of their own: the program takes the word before the precision of any scale.
KINDS += [("int", "signed_float_scale", method, granularity, "sym")
          for method in ("stats", "mse") for granularity in ("per_tensor", "per_channel", "per_group")]
# (e, m) of each kind of float that our specs have.
FLOATS = {
    "float": ((4, 3), (5, 2), (3, 2), (2, 3), (2, 1), (3, 4), (5, 8), (1, 2)),
    "float_ocp": ((4, 3), (5, 2), (3, 2), (2, 3), (2, 1)),
    "float_fnuz": ((4, 3), (5, 2)),
}


def random_arguments(c, kind):
    """The program's arguments, by their names there."""
    weight_format, precision, method, granularity, symmetry = kind
    arguments = dict(weight_param_method=method, weight_scale_precision=precision, weight_quant_type=symmetry,
                     weight_quant_granularity=granularity, weight_group_size=c.choice((8, 16, 32, 128)) if granularity == "per_group" else None,
                     quantize_weight_zero_point=c.random() < 0.7, scaling_min_val=c.choice((1e-4, 1e-10)),
                     weight_kwargs={"narrow_range": c.random() < 0.3})
    if weight_format == "int":
        widths = (2, 3, 4, 5, 6, 7, 8) if precision.startswith("signed") else (2, 3, 4, 5, 6, 7, 8, 10, 13)
        arguments.update(weight_quant_format="int", weight_bit_width=c.choice(widths))
    else:
        e, m = c.choice(FLOATS[weight_format])
        arguments.update(weight_quant_format=f"{weight_format}_e{e}m{m}", weight_bit_width=1 + e + m)
    if precision == "po2_scale" and c.random() < 0.5:
        arguments["scale_rounding_func_type"] = c.choice(("ceil", "floor"))
    return arguments


def make_quantizer(arguments):
    return generate_quantizers(**arguments, input_scale_precision="float_scale")["weight_quant"]
