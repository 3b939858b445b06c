// Answers of ListOptions and CheckOptions: the option table as it looks from this node.
#pragma once

#include "collectors/collector.h"

namespace profd {

namespace v1 {
class CheckOptionsRequest;
class CheckOptionsResponse;
class ListOptionsRequest;
class ListOptionsResponse;
}  // namespace v1

void ListOptions(const Host& host, v1::ListOptionsResponse* out);
// What StartSession would say to these options; nothing starts.
// `max_hz`: what the caller may have at most; 0 = no limit.
void CheckOptions(const Host& host, double max_hz,
                  const v1::CheckOptionsRequest& request_untrusted,
                  v1::CheckOptionsResponse* out);

}  // namespace profd
