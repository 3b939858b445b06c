#pragma once

#include "client/context.h"

namespace profd::client {

// `profctl collectors`: what can be collected here, and why the rest cannot.
int RunCollectors(const Context& context);

}  // namespace profd::client
