#include "base/status.h"

#include <array>
#include <cerrno>
#include <system_error>

namespace profd {
namespace {

StatusCode CodeOfErrno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return StatusCode::kPermissionDenied;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EROFS:  // of a volume that takes nothing more, until it is mounted anew
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EBUSY:
      return StatusCode::kResourceExhausted;
    case EINVAL:
    case ENAMETOOLONG:
      return StatusCode::kInvalidArgument;
    case ENOSYS:
    case EOPNOTSUPP:
      return StatusCode::kUnimplemented;
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return StatusCode::kFailedPrecondition;
    case ETIMEDOUT:
      return StatusCode::kDeadlineExceeded;
    default:
      return StatusCode::kUnavailable;
  }
}

}  // namespace

std::string_view ToString(StatusCode code) {
  static constexpr std::array<std::string_view, kStatusCodes> kNames = {
      "ok",           "cancelled",         "unknown error",      "invalid argument",
      "deadline exceeded", "not found",    "already exists",     "not allowed",
      "limit reached", "not possible now",  "aborted",            "out of range",
      "not supported here", "internal error", "unavailable",     "data loss",
      "unauthenticated"};
  auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown error";
}

Status Status::FromErrno(int error_number, std::string_view what) {
  std::string message(what);
  message += ": ";
  message += std::generic_category().message(error_number);
  return {CodeOfErrno(error_number), std::move(message)};
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  // A full volume, a limit and what another holds are different answers with this code: the message has which.
  if (code_ == StatusCode::kResourceExhausted && !message_.empty()) return message_;
  std::string text(profd::ToString(code_));
  if (!message_.empty()) {
    text += ": ";
    text += message_;
  }
  return text;
}

Status Status::Annotate(std::string_view context) const {
  if (ok()) return *this;
  std::string message(context);
  message += ": ";
  message += message_;
  return {code_, std::move(message)};
}

}  // namespace profd
