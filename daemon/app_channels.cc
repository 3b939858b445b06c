// Channels that are released to other tools: wiring to the arbiter, the state folder and RPC.
#include <future>

#include "base/log.h"
#include "daemon/app_impl.h"

namespace profd {

// Before the first session starts: an earlier run of the daemon may have released channels.
void App::Impl::BuildReleases() {
  ChannelReleases::Deps deps{*control, clock, *arbiter, node->host().devices,
                             [](const Peer& peer, const DeviceInfo& device) { return Node::MayUse(peer, device); },
                             [this](const std::string& session) { return sessions->UidOf(session); }};
  deps.save = [this](std::string text) {
    writer->Post([this, text = std::move(text)] {
      if (Status saved = state_store->SaveReleases(text); !saved.ok()) {
        log::Warning("released channels would be taken back by a restart", {{"why", saved.ToString()}});
      }
    });
  };
  releases = std::make_unique<ChannelReleases>(std::move(deps));
  Result<std::string> earlier = state_store->LoadReleases();
  if (!earlier.ok()) {
    log::Warning("released channels of an earlier run cannot be read", {{"why", earlier.status().ToString()}});
    return;
  }
  if (earlier->empty()) return;
  std::promise<void> done;
  control->Post([this, &earlier, &done] {
    releases->Restore(*earlier);
    done.set_value();
  });
  done.get_future().wait();
}

void App::Impl::AnswerReleases(RpcDeps* deps) {
  deps->release_channels = [this](const Peer& peer, const v1::ReleaseChannelsRequest& request, v1::ChannelReleases* out,
                                  const std::function<void(const Status&)>& finish) {
    releases->Release(peer, request, out, finish);
  };
  deps->acquire_channels = [this](const Peer& peer, const v1::AcquireChannelsRequest& request, v1::ChannelReleases* out,
                                  const std::function<void(const Status&)>& finish) {
    finish(releases->Acquire(peer, request, out));
  };
}

}  // namespace profd
