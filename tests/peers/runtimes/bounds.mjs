// How far logits may be from those of the same runtime with our dequantized weights, as a share of the largest logit.
//
// Where the loader decodes weights into the tensors that the reference has, both runs are the same operations on the same numbers: bound 0
// (`isExact`).
//
// Elsewhere kernels sum in other orders and round at other places. A product that is rounded is the exact product of a matrix whose rows are off
// by a rounding, so the reference runs again with each output of its layers moved by up to two roundings, by draws (MOVES of loaded_cases.py); `sway`
// is the farthest that a logit moved. It is the model's own: how roundings grow in it, and how often a value next to a limit between two codes of
// quantized inputs falls to the other side.

/** Products are about half of what is rounded in a layer, and the farthest of few draws is less than the farthest of all: twice each. */
const swayFactor = 4;

/** NaN if a runtime was not asked for what it needs. */
export const boundOf = ({ isExact, sway, size }) => (isExact ? 0 : (swayFactor * sway) / size);

/** Roundings of a product with a single 1: of the scale, of the weight in both models, of the input's scale, of the product. */
const productRoundings = 4;
/** Half a unit in the last place of 1. */
const roundoffs = { float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 };

/** How far a product of one layer may be from the reference's, as a share of it (layer_products.py). */
export const productBoundOf = ({ isExact, dtype }) => (isExact ? 0 : productRoundings * roundoffs[dtype]);
