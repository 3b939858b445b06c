// Errors are values. Codes are gRPC's canonical ones so that a reason travels from the driver to the
// client's exit code without being translated on the way. "Not here", "not allowed", "busy", "off"
// and "broken" stay different answers:
//   kUnimplemented       this chip, driver or kernel cannot do it
//   kPermissionDenied    the caller may not
//   kResourceExhausted   another client holds it (busy), a limit is reached, or the volume is full: the message names which
//   kFailedPrecondition  switched off or not in the right state
//   kUnavailable         it is broken or gone right now; trying again may help
//   kInternal            a bug of ours or an answer that makes no sense
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/problem.h"

namespace profd {

enum class StatusCode : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

inline constexpr size_t kStatusCodes = 17;

// "invalid argument", "not found", ... as people read it.
std::string_view ToString(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return {}; }
  // What is wrong with a request; the message is their description, one per line.
  Status(StatusCode code, std::vector<Problem> problems)
      : code_(code),
        message_(Describe(problems)),
        problems_(std::make_shared<const std::vector<Problem>>(std::move(problems))) {}
  Status(StatusCode code, Problem problem) : Status(code, std::vector<Problem>{std::move(problem)}) {}
  // `what` plus strerror(error_number), with the code that fits the errno.
  static Status FromErrno(int error_number, std::string_view what);

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // Empty: the message is all there is to say.
  std::span<const Problem> problems() const {
    return problems_ == nullptr ? std::span<const Problem>() : *problems_;
  }
  // "not found: no session 17"; "ok" for success; of kResourceExhausted the message alone.
  std::string ToString() const;
  // The same error with "context: " in front of its message; success stays success.
  Status Annotate(std::string_view context) const;

  // Marks in the code that an error is deliberately ignored.
  void Ignore() const {}

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::shared_ptr<const std::vector<Problem>> problems_;
};

inline Status InvalidArgument(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
inline Status DeadlineExceeded(std::string m) {
  return {StatusCode::kDeadlineExceeded, std::move(m)};
}
inline Status NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
inline Status AlreadyExists(std::string m) { return {StatusCode::kAlreadyExists, std::move(m)}; }
inline Status PermissionDenied(std::string m) {
  return {StatusCode::kPermissionDenied, std::move(m)};
}
inline Status ResourceExhausted(std::string m) {
  return {StatusCode::kResourceExhausted, std::move(m)};
}
inline Status FailedPrecondition(std::string m) {
  return {StatusCode::kFailedPrecondition, std::move(m)};
}
inline Status Aborted(std::string m) { return {StatusCode::kAborted, std::move(m)}; }
inline Status OutOfRange(std::string m) { return {StatusCode::kOutOfRange, std::move(m)}; }
inline Status Unimplemented(std::string m) { return {StatusCode::kUnimplemented, std::move(m)}; }
inline Status Internal(std::string m) { return {StatusCode::kInternal, std::move(m)}; }
inline Status Unavailable(std::string m) { return {StatusCode::kUnavailable, std::move(m)}; }
inline Status DataLoss(std::string m) { return {StatusCode::kDataLoss, std::move(m)}; }

// A value or the error that kept us from having one. Reading value() of an error is a bug (aborts).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}       // NOLINT: implicit
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T value_or(T other) const { return ok() ? value() : std::move(other); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace profd

// Leaves the function with the error, if there is one. The only macro that hides a return.
#define RETURN_IF_ERROR(expr)                            \
  do {                                                   \
    if (::profd::Status status_ = (expr); !status_.ok()) \
      return status_;                                    \
  } while (0)
