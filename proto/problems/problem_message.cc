#include "proto/problems/problem_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// gRPC's clients take 8 KiB of trailers; the status message is there, too, and some encode these in base64.
constexpr size_t kMaxProblemBytes = 3100;

void Append(int number, std::string_view bytes, std::string* out) {
  google::protobuf::io::StringOutputStream stream(out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteTag(static_cast<uint32_t>(number) << 3 | 2);
  coded.WriteVarint32(static_cast<uint32_t>(bytes.size()));
  coded.WriteRaw(bytes.data(), static_cast<int>(bytes.size()));
}

// google.rpc.BadRequest: field_violations = 1 with field = 1, description = 2. Its generated code is not in
// Debian, and a definition of ours would clash with everybody else's.
std::string BadRequest(std::span<const Problem> problems) {
  std::string message;
  for (const Problem& problem : problems) {
    if (problem.field.empty()) continue;
    std::string violation;
    Append(1, problem.field, &violation);
    Append(2, Describe(problem), &violation);
    Append(1, violation, &message);
  }
  return message;
}

}  // namespace

void ToWire(const Problem& problem, v1::Problem* out) {
  static_assert(v1::Problem::KIND_INVALID == static_cast<int>(Problem::Kind::kInvalid) + 1 &&
                v1::Problem::KIND_FAILED == static_cast<int>(Problem::Kind::kFailed) + 1);
  out->set_kind(static_cast<v1::Problem::Kind>(static_cast<int>(problem.kind) + 1));
  out->set_field(problem.field);
  out->set_value(problem.value);
  out->set_text(problem.text);
  out->set_holder(problem.holder);
  if (problem.left_out > 0) out->set_left_out(problem.left_out);
}

Problem FromWire(const v1::Problem& message) {
  Problem problem;
  if (message.kind() >= v1::Problem::KIND_INVALID && message.kind() <= v1::Problem::KIND_FAILED) {
    problem.kind = static_cast<Problem::Kind>(static_cast<int>(message.kind()) - 1);
  }
  problem.field = message.field();
  problem.value = message.value();
  problem.text = message.text();
  problem.holder = message.holder();
  problem.left_out = message.left_out();
  return problem;
}

std::string PackDetails(const Status& status) {
  if (status.problems().empty()) return {};
  v1::Problems problems;
  for (const Problem& problem : status.problems()) ToWire(problem, problems.add_problems());
  if (problems.ByteSizeLong() > kMaxProblemBytes) return {};
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.add_details()->PackFrom(problems);
  // The same once more, for clients that know nothing of profd: where there is space for it.
  std::string fields = BadRequest(status.problems());
  if (!fields.empty() && problems.ByteSizeLong() + fields.size() <= kMaxProblemBytes) {
    google::protobuf::Any* any = details.add_details();
    any->set_type_url("type.googleapis.com/google.rpc.BadRequest");
    any->set_value(std::move(fields));
  }
  return details.SerializeAsString();
}

std::vector<Problem> UnpackDetails(std::string_view bytes) {
  std::vector<Problem> found;
  v1::StatusDetails details;
  if (bytes.empty() || !details.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return found;
  for (const google::protobuf::Any& detail : details.details()) {
    v1::Problems problems;
    if (!detail.Is<v1::Problems>() || !detail.UnpackTo(&problems)) continue;
    for (const v1::Problem& problem : problems.problems()) found.push_back(FromWire(problem));
  }
  return found;
}

}  // namespace profd
