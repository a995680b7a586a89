// How far logits may be from those of the same runtime with our dequantized weights, as a share of the largest logit: one bound for each dtype in
// which a runtime computes.

/** u: half a unit in the last place of 1. */
const roundoff = { float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 };

// Both runs multiply the same weights, but kernels sum in other orders and dequantize at other places, so that values of the residual stream
// differ by some roundings. About ten of a layer add up like a random walk: sqrt(10 * 30 layers) = 17 roundings, and the largest of
// some thousand logits is at four standard deviations.
const roundings = 64;

// Where the runtime rounds the inputs of layers to 8 bits as they come, a value beside a limit between two codes falls to either side of it in the
// two runs, by a step of up to 2^-7 of the largest (int8) or 2^-4 of itself (e4m3).
const inputSteps = { int8: 2 ** -7, fp8_e4m3: 2 ** -4 };

// Of a value halfway between two codes, formats with zero points round x/s + z, the simulation round(x/s) + z, as their tools do: once in some
// million weights a code is off by one.
const halfwayStep = 2 ** -12;

export const boundOf = ({ dtype, inputs, hasZeroPoints }) =>
  roundings * roundoff[dtype] + (inputs ? inputSteps[inputs] : 0) + (hasZeroPoints ? halfwayStep : 0);
