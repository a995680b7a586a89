// Keeps printf out of the module: 10 KB for texts that nobody reads.
#include <__verbose_abort>
#include <cstdarg>
#include <cstdint>

// What the C++ library does when a container is misused or memory ends: trap at once. Its own handler would print a
// message first; the worker that trapped is replaced either way.
void std::__libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }

// The C library's sprintf without floating point. The one caller is Embind, which names a type in its errors by the
// type's address, "%p"; the format is therefore not looked at.
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
