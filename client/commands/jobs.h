#pragma once

#include <string>

#include "client/context.h"

namespace profd::client {

struct JobsOptions {
  std::string job;
  bool attached = false;
};

int RunJobs(const Context& context, const JobsOptions& options);

}  // namespace profd::client
