#include "core/error.h"

#include <utility>

#include "core/result.h"

namespace wasmquant {

Error::Error() noexcept = default;
Error::Error(ErrorCode code_, std::string_view where_, std::string message_) noexcept
    : code(code_), where(where_), message(std::move(message_)) {}
Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) noexcept = default;
Error::~Error() = default;

Result<void>::Result(Error&& error) : error_(std::make_unique<Error>(std::move(error))) {}
Result<void>::Result(const Error& error) : error_(std::make_unique<Error>(error)) {}
Result<void>::Result(Result&& other) noexcept = default;
Result<void>& Result<void>::operator=(Result&& other) noexcept = default;
Result<void>::~Result() = default;

}  // namespace wasmquant
