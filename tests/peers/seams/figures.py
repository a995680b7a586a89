"""What a report says, beside what was found: errors of weights, sizes of files, counts."""
import numpy as np


def mean_square(values):
    return float(np.mean(np.square(values))) if values.size else 0.0


def differs(found, told, slack):
    """`told`: a number, or the name of one that JSON lacks."""
    told = float(told)
    return not abs(told - found) <= slack if np.isfinite(found) else told != found


def false_errors(told, source, found):
    """Names and values of an error's figures that are not those of `found`. The rounding of stored values, which a report may count before or after
    it, bounds all of them: sums of squares by 1e-7 of the signal, single values by 2^-8 of the largest."""
    signal, noise = mean_square(source), mean_square(found - source)
    slack = 2e-3 * noise + 1e-7 * signal
    if differs(noise, told["mse"], slack):
        yield "mse", noise
    told_noise = signal * 10 ** (-float(told["sqnrDb"]) / 10)
    if signal > 0 and differs(noise, told_noise, slack):
        yield "sqnrDb", 10 * np.log10(signal / noise) if noise else np.inf
    largest = float(np.abs(found - source).max(initial=0))
    if differs(largest, told["maxAbs"], 2e-3 * largest + 2.0**-8 * float(np.abs(source).max(initial=0))):
        yield "maxAbs", largest
    norms = float(np.sqrt(np.sum(source**2) * np.sum(found**2)))
    cosine = float(np.sum(source * found)) / norms if norms else np.nan
    if np.isfinite(cosine) and differs(cosine, told["cosine"], 2e-3 * (1 - cosine) + 1e-7):
        yield "cosine", cosine


def false_sizes(report, files, weights, before):
    """`files`: sizes of all that is there; `weights`: names of those with weights; `before`: bytes of the source's files with weights."""
    told = {file["name"]: file["bytes"] for file in report["files"]}
    for name in told.keys() | files.keys():
        if told.get(name) != files.get(name):
            yield f"the report says that {name} has {told.get(name)} bytes, it has {files.get(name)}"
    totals, after = report["totals"], sum(files[name] for name in weights)
    if totals["bytesAfter"] != after:
        yield f"bytesAfter is {totals['bytesAfter']}, the files have {after}"
    if totals["bytesBefore"] != before:
        yield f"bytesBefore is {totals['bytesBefore']}, the source has {before}"


def false_counts(report, source, quantized, bits_of, casts_count):
    """`source`: values by name, with a matrix an expert where the output has those. `bits_of`: stored bits of quantized weights, or None.
    `casts_count`: whether weights that a config casts to a shorter float are counted as quantized, as in all formats but GGUF."""
    totals, tensors = report["totals"], report["tensors"]
    coverage = totals["coverage"]
    elements = lambda each: sum(int(np.prod(tensor["shape"])) for tensor in each)
    casts = [tensor for tensor in tensors if tensor["isCast"]] if casts_count else []
    held = sum(source[name].size for name in quantized if name in source) + elements(casts)
    # Of a weight with all experts, one tensor of the source may become many.
    is_split = len(tensors) != len(source)
    for what, told, count in (
        ("tensors", totals["tensors"], len(tensors)),
        ("quantized", totals["quantized"], totals["quantized"] if is_split else len(quantized) + len(casts)),
        # A head that a rotation parts from its embedding is made of what is counted already.
        ("parameters", coverage["parameters"], elements(each for each in tensors if each["name"] != "lm_head.weight" or each["name"] in source)),
        ("parameters", coverage["parameters"], sum(value.size for value in source.values())),
        ("quantizedParameters", coverage["quantizedParameters"], held),
        ("left", sum(row["parameters"] for row in coverage["left"]), coverage["parameters"] - coverage["quantizedParameters"]),
    ):
        if told != count:
            yield f"{what} in totals is {told}, counted are {count}"
    bits = None if casts else bits_of(quantized)
    if bits is not None and held and abs(totals["bitsPerWeight"] - bits / held) > 1e-6 * bits / held:
        yield f"bitsPerWeight is {totals['bitsPerWeight']}, the file has {bits / held:.6g}"
