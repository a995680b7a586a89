"""Codes of a few bits in words and bytes, as the formats' documentations lay them out."""
import numpy as np

# AutoAWQ's order of the eight columns of a word.
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def dense_codes(words, bits, count):
    """Codes along the last axis of int32 words: code i has the bits from i * bits on, counted over all words of a row."""
    data = np.ascontiguousarray(words).view(np.uint8)
    stream = np.unpackbits(data, axis=-1, bitorder="little")[..., : count * bits]
    parts = stream.reshape(*stream.shape[:-1], count, bits).astype(np.int64)
    return parts @ (1 << np.arange(bits, dtype=np.int64))


def dense_codes_down(words, bits, count):
    """The same along the first axis."""
    return dense_codes(np.ascontiguousarray(words.T), bits, count).T


def ordered_nibbles(words, order):
    """Eight codes of four bits from each word of the last axis; `order[k]` is the column of nibble k."""
    nibbles = (words[..., None].astype(np.int64) >> (4 * np.arange(8))) & 15
    columns = np.empty_like(nibbles)
    columns[..., list(order)] = nibbles
    return columns.reshape(*words.shape[:-1], -1)


def signed(codes, bits):
    """Two's complement."""
    return np.where(codes >= 1 << (bits - 1), codes - (1 << bits), codes)


def nibbles(data):
    """Two codes from each byte of the last axis, the low half first."""
    return np.stack([data & 15, data >> 4], -1).reshape(*data.shape[:-1], -1)


def byte_codes(data, bits):
    """Codes of `bits` in bytes of the last axis, lowest bits first: 8 codes of 3 bits in 3 bytes, 4 of 6 bits in 3 bytes."""
    stream = np.unpackbits(np.ascontiguousarray(data), axis=-1, bitorder="little")
    parts = stream.reshape(*stream.shape[:-1], -1, bits).astype(np.int64)
    return parts @ (1 << np.arange(bits, dtype=np.int64))


def minifloat(codes, exponent_bits, mantissa_bits, bias):
    """Values of sign | exponent | mantissa without special codes."""
    sign = np.where(codes >> (exponent_bits + mantissa_bits), -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = codes & ((1 << mantissa_bits) - 1)
    fraction = mantissa / 2.0**mantissa_bits
    return sign * np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent.astype(float) - bias))


def fp4(codes):
    return minifloat(codes, 2, 1, 1)


def power_of_two(codes):
    """E8M0: 2^(code - 127)."""
    return np.exp2(codes.astype(np.float64) - 127)
