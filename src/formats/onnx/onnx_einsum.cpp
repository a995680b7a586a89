#include "formats/onnx/onnx_einsum.h"

namespace wasmquant::onnx {

Use einsum_use(std::string_view equation, uint32_t input) noexcept {
  const size_t arrow = equation.find("->"), comma = equation.find(',');
  if (input > 1 || arrow == equation.npos || comma > arrow || equation.find(',', comma + 1) != equation.npos)
    return Use::other;
  const std::string_view operands[] = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1)};
  const std::string_view other = operands[1 - input], output = equation.substr(arrow + 2);
  char axes[2] = {};
  size_t count = 0;
  for (const char letter : operands[input]) {
    if (letter == ' ') continue;
    if (count == 2 || letter == '.') return Use::other;
    axes[count++] = letter;
  }
  if (count != 2 || axes[0] == axes[1]) return Use::other;
  // A letter of the weight and of the output only is an output feature; one of both operands only is summed over.
  const auto has = [](std::string_view text, char letter) { return text.find(letter) != text.npos; };
  const auto is_out = [&](char letter) { return has(output, letter) && !has(other, letter); };
  const auto is_in = [&](char letter) { return has(other, letter) && !has(output, letter); };
  if (is_in(axes[0]) && is_out(axes[1])) return Use::einsum_in_out;
  if (is_out(axes[0]) && is_in(axes[1])) return Use::einsum_out_in;
  return Use::other;
}

}  // namespace wasmquant::onnx
