// Input: what a kubelet and a container runtime answer, as the bytes of three messages: the first
// two behind their lengths (16 bits), the third is the rest. Whatever it is, labels come out that
// can be shown, and as few as are allowed.
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "daemon/attribution/kube_names.h"
#include "daemon/attribution/kube_pods.h"
#include "daemon/attribution/label_text.h"
#include "tests/fuzz/file_tree.h"

namespace profd {
namespace {

const std::string kId(64, 'a');

// Answers every call with the bytes that are meant for its method.
class AnyServer final : public grpc::CallbackGenericService {
 public:
  explicit AnyServer(const std::string& path) {
    // A line for every text that is not UTF-8.
    google::protobuf::SetLogHandler(nullptr);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    FUZZ_EXPECT(server_ != nullptr);
  }
  ~AnyServer() override { server_->Shutdown(); }

  std::array<std::string, 3> answers;

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const std::string& answer) {
      const grpc::Slice slice(answer);
      answer_ = grpc::ByteBuffer(&slice, 1);
      StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer answer_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override {
    const std::string& method = call->method();
    const bool kubelet = method.find("PodResources") != std::string::npos;
    const bool containers = method.find("ListContainers") != std::string::npos;
    return new Reactor(answers[kubelet ? 0 : containers ? 1 : 2]);
  }

  std::unique_ptr<grpc::Server> server_;
};

void CheckLabel(const std::string& text) {
  FUZZ_EXPECT(text.size() <= kMaxLabelBytes);
  FUZZ_EXPECT(LabelText(text) == text);
}

}  // namespace

void fuzz::Run(Input input) {
  static fuzz::TreeDirectory folder;
  static const std::string path = folder.path() + "/s";
  static AnyServer server(path);
  server.answers[0] = input.TakePiece(input.Take<uint16_t>());
  server.answers[1] = input.TakePiece(input.Take<uint16_t>());
  server.answers[2] = input.rest();
  Result<std::vector<PodDevice>> devices = AskKubelet(path, ::geteuid());
  if (devices.ok()) {
    FUZZ_EXPECT(devices->size() <= kMaxPodDevices);
    for (const PodDevice& device : *devices) {
      for (const std::string* text :
           {&device.name_space, &device.pod, &device.container, &device.device_id}) {
        CheckLabel(*text);
      }
    }
  } else {
    FUZZ_EXPECT(devices.status().code() == StatusCode::kUnavailable);
  }
  const std::set<std::string> ids = {kId, "b"};
  auto names = AskRuntime(path, ::geteuid(), ids);
  if (!names.ok()) {
    FUZZ_EXPECT(names.status().code() == StatusCode::kUnavailable);
    return;
  }
  for (const auto& [id, name] : *names) {
    FUZZ_EXPECT(ids.contains(id));
    for (const std::string* text : {&name.name_space, &name.pod, &name.container})
      CheckLabel(*text);
  }
}

}  // namespace profd
