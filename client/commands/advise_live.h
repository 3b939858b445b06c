// `profctl advise --live`: what is wrong with the jobs of a node now.
#pragma once

#include <string>

#include "client/context.h"

namespace profd::client {

struct LiveAdviseOptions {
  bool live = false;
  bool watch = false;
  std::string job;
};

int RunLiveAdvise(const Context& context, const LiveAdviseOptions& options);

// What is wrong now, and with the ranks that are watched. kNotFound: of this job none is.
Result<v1::GetAdviceResponse> AskAdvice(ProfdApi& api, const std::string& job);

// Parts of the answer, for one node and for many. A node's name is shown where it is not empty.
struct NodeAdvice {
  std::string node;
  v1::GetAdviceResponse answer;
};
// The table of all, and each with its evidence and what to do.
void PrintAdvice(const Io& io, const std::vector<NodeAdvice>& nodes);

}  // namespace profd::client
