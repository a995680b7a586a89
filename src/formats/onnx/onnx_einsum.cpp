#include "formats/onnx/onnx_einsum.h"

#include <algorithm>
#include <string>

namespace wasmquant::onnx {

Use einsum_use(std::string_view equation, uint32_t input) {
  const size_t arrow = equation.find("->"), comma = equation.find(',');
  if (input > 1 || arrow == equation.npos || comma > arrow || equation.find(',', comma + 1) != equation.npos)
    return Use::other;
  const std::string_view operands[] = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1)};
  const std::string_view other = operands[1 - input], output = equation.substr(arrow + 2);
  std::string axes;
  for (const char letter : operands[input]) {
    if (letter == ' ') continue;
    if (letter == '.' || axes.find(letter) != axes.npos) return Use::other;
    axes += letter;
  }
  if (axes.size() < 2) return Use::other;
  // A letter of the weight and of the output only is an output feature; one of both operands only is summed over; one
  // of all three numbers the matrices of a batch.
  const auto has = [](std::string_view text, char letter) { return text.find(letter) != text.npos; };
  const auto is_out = [&](char letter) { return has(output, letter) && !has(other, letter); };
  const auto is_in = [&](char letter) { return has(other, letter) && !has(output, letter); };
  const auto is_batch = [&](char letter) { return has(other, letter) && has(output, letter); };
  const char last = axes.back(), before = axes.end()[-2];
  if (!std::all_of(axes.begin(), axes.end() - 2, is_batch)) return Use::other;
  if (is_in(before) && is_out(last)) return Use::einsum_in_out;
  if (is_out(before) && is_in(last)) return Use::einsum_out_in;
  return Use::other;
}

}  // namespace wasmquant::onnx
