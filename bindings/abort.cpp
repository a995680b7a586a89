// Keeps printf, 10 KB of unused formatting, out of the module.
#include <__verbose_abort>
#include <cstdarg>
#include <cstdint>

// Called by the C++ library on container misuse or out of memory. Traps at once instead of printing a message first;
// the trapped worker is replaced either way.
void std::__libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }

// sprintf without floating point. The only caller is Embind, which formats a type's address with "%p" in its errors;
// the format is therefore ignored.
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
