#include "daemon/attribution/kube_pods.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "daemon/attribution/kube_socket.h"
#include "daemon/attribution/label_text.h"
#include "kubelet/podresources/v1/podresources.grpc.pb.h"

namespace profd {
namespace {

constexpr std::string_view kVendor = "huawei.com/";

}  // namespace

Result<std::vector<PodDevice>> AskKubelet(const std::string& socket, uid_t own_uid) {
  Result<UniqueFd> connection = ConnectTrusted(socket, own_uid);
  if (!connection.ok()) return connection.status();
  auto stub = ::v1::PodResourcesLister::NewStub(ChannelOver(std::move(connection).value()));
  ::v1::ListPodResourcesResponse answer;
  RETURN_IF_ERROR(CallOver(socket, [&](grpc::ClientContext* context) { return stub->List(context, {}, &answer); }));
  std::vector<PodDevice> devices;
  for (const ::v1::PodResources& pod : answer.pod_resources()) {
    for (const ::v1::ContainerResources& container : pod.containers()) {
      for (const ::v1::ContainerDevices& given : container.devices()) {
        if (!std::string_view(given.resource_name()).starts_with(kVendor)) continue;
        for (const std::string& id : given.device_ids()) {
          if (devices.size() == kMaxPodDevices) return devices;
          devices.push_back({LabelText(pod.namespace_()), LabelText(pod.name()),
                             LabelText(container.name()), LabelText(id)});
        }
      }
    }
  }
  return devices;
}

}  // namespace profd
