#include "daemon/attribution/kube_names.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "cri/runtime/v1/runtime.grpc.pb.h"
#include "daemon/attribution/kube_socket.h"
#include "daemon/attribution/label_text.h"

namespace profd {

Result<std::map<std::string, ContainerNames>> AskRuntime(const std::string& socket, uid_t own_uid,
                                                         const std::set<std::string>& ids) {
  namespace cri = ::runtime::v1;
  Result<UniqueFd> connection = ConnectTrusted(socket, own_uid);
  if (!connection.ok()) return connection.status();
  auto stub = cri::RuntimeService::NewStub(ChannelOver(std::move(connection).value()));
  cri::ListContainersRequest running;
  running.mutable_filter()->mutable_state()->set_state(cri::CONTAINER_RUNNING);
  cri::ListContainersResponse containers;
  RETURN_IF_ERROR(CallOver(socket, [&](grpc::ClientContext* context) { return stub->ListContainers(context, running, &containers); }));
  cri::ListPodSandboxResponse sandboxes;
  RETURN_IF_ERROR(CallOver(socket, [&](grpc::ClientContext* context) { return stub->ListPodSandbox(context, {}, &sandboxes); }));
  std::map<std::string_view, const cri::PodSandbox*> by_id;
  for (const cri::PodSandbox& sandbox : sandboxes.items()) by_id[sandbox.id()] = &sandbox;
  std::map<std::string, ContainerNames> names;
  for (const cri::Container& container : containers.containers()) {
    if (!ids.contains(container.id())) continue;
    ContainerNames found{"", "", LabelText(container.metadata().name())};
    if (auto at = by_id.find(container.pod_sandbox_id()); at != by_id.end()) {
      found.name_space = LabelText(at->second->metadata().namespace_());
      found.pod = LabelText(at->second->metadata().name());
    }
    names[container.id()] = std::move(found);
  }
  return names;
}

}  // namespace profd
