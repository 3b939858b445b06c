#include "daemon/advice/advice_view.h"

#include <algorithm>
#include <cmath>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

uint64_t Ns(double ms) { return static_cast<uint64_t>(std::llround(std::clamp(ms, 0.0, 1e12) * 1e6)); }

v1::Advice::Confidence WireConfidence(Confidence confidence) {
  if (confidence == Confidence::kHigh) return v1::Advice::CONFIDENCE_HIGH;
  return confidence == Confidence::kMedium ? v1::Advice::CONFIDENCE_MEDIUM : v1::Advice::CONFIDENCE_LOW;
}

void Fill(const LiveAdvice& advice, v1::Advice* out) {
  out->set_id(advice.id);
  out->set_check(std::string(advice.check));
  out->set_job_id(advice.job_id);
  out->set_uid(advice.uid);
  if (advice.rank) out->set_rank(*advice.rank);
  if (advice.pid != 0) out->set_pid(advice.pid);
  if (advice.device) out->set_device(static_cast<uint32_t>(*advice.device));
  out->set_what(advice.what);
  for (const std::string& text : advice.evidence) out->add_evidence(text);
  for (const std::string& text : advice.advice) out->add_advice(text);
  if (advice.cost_ms) out->set_cost_ns(Ns(*advice.cost_ms));
  out->set_confidence(WireConfidence(advice.confidence));
  out->set_since_ns(advice.since_ns);
  out->set_raised_ns(advice.raised_ns);
  if (advice.step) out->set_step(*advice.step);
}

void Fill(const JobFacts& job, const RankFacts& rank, v1::RankStep* out) {
  out->set_job_id(job.job_id);
  out->set_uid(job.uid);
  out->set_pid(rank.pid);
  if (rank.rank) out->set_rank(*rank.rank);
  for (int device : rank.devices) out->add_devices(static_cast<uint32_t>(device));
  if (rank.step) out->set_step(*rank.step);
  if (rank.step_ms > 0) out->set_step_ns(Ns(rank.step_ms));
  if (!rank.now) return;
  v1::StepShares& shares = *out->mutable_shares();
  shares.set_computation_ns(Ns(rank.now->computation_ms));
  shares.set_communication_ns(Ns(rank.now->communication_ms));
  shares.set_wait_ns(Ns(rank.now->wait_ms));
  shares.set_free_ns(Ns(rank.now->free_ms));
}

}  // namespace

void DescribeAdvice(const Peer& peer, const v1::GetAdviceRequest& request_untrusted, const AdviceBoard& board,
                    const std::vector<JobFacts>& jobs, v1::GetAdviceResponse* out) {
  const auto wanted = [&](uint32_t uid, const std::string& job_id) {
    return peer.Sees(uid) && (request_untrusted.job_id().empty() || request_untrusted.job_id() == job_id);
  };
  for (const LiveAdvice* advice : board.Raised()) {
    if (wanted(advice->uid, advice->job_id)) Fill(*advice, out->add_advice());
  }
  if (!request_untrusted.ranks()) return;
  for (const JobFacts& job : jobs) {
    if (!wanted(job.uid, job.job_id)) continue;
    for (const RankFacts& rank : job.ranks) Fill(job, rank, out->add_ranks());
  }
}

}  // namespace profd
