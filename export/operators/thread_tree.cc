#include "export/operators/thread_tree.h"

namespace profd::exporting::operators {

bool ThreadTree::Takes(const Api& api) {
  const bool has_level = api.level == kNodeLevel || api.level == kAclLevel || api.level == kModelLevel || api.level == kCommunicationLevel;
  return has_level && api.end != api.begin;
}

ThreadTree::ThreadTree(std::span<const Api> apis) : all_(apis) {
  std::map<uint16_t, const Api*> last;
  std::vector<int32_t> open;
  // Arrays that grow are copied again and again, into memory that was never used.
  for (Large<uint32_t>* each : {&apis_, &ordinals_}) each->reserve(apis.size());
  for (Large<int32_t>* each : {&parents_, &nodes_}) each->reserve(apis.size());
  for (const Api& api : apis) {
    if (!Takes(api)) continue;
    // A node-level API always counts, others only where they do not touch the one before of their level.
    const Api*& before = last[api.level];
    if (api.level != kNodeLevel && before != nullptr && before->end >= api.begin) continue;
    before = &api;
    while (!open.empty() && Of(open.back()).end < api.end) open.pop_back();
    parents_.push_back(open.empty() ? -1 : open.back());
    apis_.push_back(static_cast<uint32_t>(&api - apis.data()));
    open.push_back(static_cast<int32_t>(apis_.size()) - 1);
    uint32_t ordinal = 0;
    if (api.level == kNodeLevel || api.level == kCommunicationLevel) {
      Level& level = api.level == kNodeLevel ? nodes_ : communication_;
      ordinal = static_cast<uint32_t>(level.size());
      level.push_back(open.back());
    }
    ordinals_.push_back(ordinal);
  }
}

int32_t ThreadTree::Find(uint64_t time, size_t* from) const {
  while (*from < apis_.size() && all_[apis_[*from]].begin < time) ++*from;
  auto at = static_cast<int32_t>(*from) - 1;
  while (at >= 0 && Of(at).end < time) at = ParentOf(at);
  return at;
}

int32_t ThreadTree::Above(int32_t index, uint16_t level) const {
  while (index >= 0 && Of(index).level != level) index = ParentOf(index);
  return index;
}

}  // namespace profd::exporting::operators
