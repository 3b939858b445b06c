// For tests of this folder only: a kubelet and a container runtime, as far as profd queries them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "cri/runtime/v1/runtime.grpc.pb.h"
#include "kubelet/podresources/v1/podresources.grpc.pb.h"

namespace profd {

class FakeKubelet final : public ::v1::PodResourcesLister::Service {
 public:
  void Give(const std::string& pod, const std::string& resource, const std::string& device) {
    std::lock_guard lock(mutex);
    auto* added = answer.add_pod_resources();
    added->set_name(pod);
    added->set_namespace_("ml");
    auto* container = added->add_containers();
    container->set_name("main");
    auto* devices = container->add_devices();
    devices->set_resource_name(resource);
    devices->add_device_ids(device);
  }
  grpc::Status List(grpc::ServerContext*, const ::v1::ListPodResourcesRequest*,
                    ::v1::ListPodResourcesResponse* out) override {
    std::lock_guard lock(mutex);
    *out = answer;
    return status;
  }
  std::mutex mutex;  // more may be given while it serves
  ::v1::ListPodResourcesResponse answer;
  grpc::Status status;
};

class FakeRuntime final : public ::runtime::v1::RuntimeService::Service {
 public:
  void Run(const std::string& id, const std::string& pod, const std::string& name) {
    auto* container = containers.add_containers();
    container->set_id(id);
    container->set_pod_sandbox_id("sandbox-" + pod);
    container->mutable_metadata()->set_name(name);
    auto* sandbox = sandboxes.add_items();
    sandbox->set_id("sandbox-" + pod);
    sandbox->mutable_metadata()->set_name(pod);
    sandbox->mutable_metadata()->set_namespace_("ml");
  }
  grpc::Status ListContainers(grpc::ServerContext*, const ::runtime::v1::ListContainersRequest* request,
                              ::runtime::v1::ListContainersResponse* out) override {
    running_only = request->filter().state().state() == ::runtime::v1::CONTAINER_RUNNING;
    *out = containers;
    return grpc::Status::OK;
  }
  grpc::Status ListPodSandbox(grpc::ServerContext*, const ::runtime::v1::ListPodSandboxRequest*,
                              ::runtime::v1::ListPodSandboxResponse* out) override {
    *out = sandboxes;
    return refuses ? grpc::Status(grpc::StatusCode::INTERNAL, "no") : grpc::Status::OK;
  }
  ::runtime::v1::ListContainersResponse containers;
  ::runtime::v1::ListPodSandboxResponse sandboxes;
  // Set and looked at while it serves.
  std::atomic<bool> refuses{false};
  std::atomic<bool> running_only{false};
};

inline std::unique_ptr<grpc::Server> ServeOn(const std::string& path, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.SetMaxSendMessageSize(-1);
  return builder.BuildAndStart();
}

}  // namespace profd
