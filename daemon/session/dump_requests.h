// Requests about dumps, by session or by name: listed, fetched, pinned, removed. Lives on the control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/session/peer.h"
#include "daemon/session/session_records.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class DumpRequests {
 public:
  // References outlive it.
  DumpRequests(const Strand& control, SessionRecords& records, DumpRemover& remover, DumpRetention* dumps_or_null)
      : control_(control), records_(records), remover_(remover), dumps_(dumps_or_null) {}

  // Directory names of a finished session's dumps, oldest first, if the peer may take them; or the one
  // that is named.
  Result<std::vector<std::string>> DumpsOf(const Peer& peer, const std::string& id_untrusted,
                                           const std::string& dump_untrusted) const;
  void Delete(const Peer& peer, const std::string& id_untrusted, const std::string& dump_untrusted,
              std::function<void(Result<uint64_t>)> reply);
  // Whether a dump (its path or name), or one of a session's, waits for the database.
  bool IsWaiting(std::string_view dump) const;
  bool IsWaiting(const v1::Session& session) const;
  // Complete dumps that are wanted, in the order in which they were made.
  std::vector<KeptDump> CompleteDumps(const std::function<bool(const KeptDump&)>& wanted) const;
  v1::ListDumpsResponse List(const Peer& peer) const;
  Status Pin(const Peer& peer, const v1::PinDumpRequest& request_untrusted, v1::PinDumpResponse* out);
  Status Unpin(const Peer& peer, const v1::UnpinDumpRequest& request_untrusted, v1::UnpinDumpResponse* out);

 private:
  const KeptDump* Find(const Peer& peer, const std::string& name) const;
  template <class Request, class Response>
  Status SetPinned(bool pinned, const Peer& peer, const Request& request, Response* out);

  const Strand& control_;
  SessionRecords& records_;
  DumpRemover& remover_;
  DumpRetention* const dumps_;  // null: this daemon writes none
};

}  // namespace profd
