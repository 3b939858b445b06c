// Feeds of a session's dump for what its processes report.
#pragma once

#include <utility>

#include "daemon/data/dump_writer.h"

namespace profd {

// A feed with its entry in the manifest, which shows that it runs. `options.file`, if any, is the one file all
// of its text records go to.
inline DumpFeed* AddSessionFeed(WriterSession& dump, FeedOptions options) {
  ManifestChannel channel{.collector = options.collector, .device = options.device, .file = options.file,
                          .state = "running"};
  DumpFeed* feed = dump.AddFeed(std::move(options));
  dump.EditManifest([channel = std::move(channel)](Manifest& manifest) {
    for (ManifestChannel& known : manifest.channels) {
      if (known.collector != channel.collector || known.device != channel.device) continue;
      known.state = channel.state;
      return;
    }
    manifest.channels.push_back(channel);
  });
  return feed;
}

}  // namespace profd
