// Keeps printf, 10 KB of unused formatting, out of the module.
#include <__verbose_abort>
#include <cstdarg>
#include <cstdint>

// Called by the C++ library on misuse or out of memory. Traps without a message: the worker is replaced anyway.
void std::__libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }

// sprintf without floating point. It ignores the format: the only caller, Embind, prints an address with "%p".
extern "C" int siprintf(char* out, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const auto address = reinterpret_cast<uintptr_t>(va_arg(arguments, void*));
  va_end(arguments);
  int length = 0;
  out[length++] = '0';
  out[length++] = 'x';
  for (int shift = 28; shift >= 0; shift -= 4) out[length++] = "0123456789abcdef"[address >> shift & 15];
  out[length] = '\0';
  return length;
}
