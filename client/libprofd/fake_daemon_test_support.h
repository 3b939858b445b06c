// A daemon made for tests: listens on a SOCK_SEQPACKET, keeps all it receives, sends what the test requests
// to.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/testing/eventually.h"
#include "base/testing/temp_dir.h"
#include "client/libprofd/profd.h"
#include "proto/attach/attach_protocol.h"
#include "proto/attach/mark_ring_writer.h"

namespace profd::lib {

// Generous: no test passes or fails by how long something took.
inline constexpr std::chrono::seconds kPatience{60};

// The daemon's view of a ring, without its distrust.
class RingView {
 public:
  struct Taken {
    int64_t time_ns = 0, value = 0;
    int32_t thread = 0;
    attach::MarkKind kind = attach::MarkKind::kMark;
    std::string name;
  };
  explicit RingView(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return;
    bytes_ = static_cast<size_t>(info.st_size);
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    position_ = ring().head;
  }
  ~RingView() { ::munmap(memory_, bytes_); }
  RingView(const RingView&) = delete;
  RingView& operator=(const RingView&) = delete;

  attach::MarkRing& ring() { return *static_cast<attach::MarkRing*>(memory_); }
  size_t bytes() const { return bytes_; }
  uint64_t position() const { return position_; }
  // Leaves the ring's head where it was, as a daemon does that is killed in the middle.
  bool Take(Taken* out) {
    auto* slots = reinterpret_cast<attach::MarkSlot*>(static_cast<std::byte*>(memory_) +
                                                      attach::kRingHeaderBytes);
    attach::MarkSlot& slot = slots[position_ & (ring().slots - 1)];
    if (slot.sequence.load(std::memory_order_acquire) != position_ + 1) return false;
    *out = {slot.time_ns, slot.value, slot.thread, static_cast<attach::MarkKind>(slot.kind),
            std::string(slot.name, slot.name_bytes)};
    slot.sequence.store(position_ + ring().slots, std::memory_order_release);
    ++position_;
    return true;
  }
  std::vector<Taken> TakeAll() {
    std::vector<Taken> all;
    for (Taken taken; Take(&taken);) all.push_back(taken);
    return all;
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  uint64_t position_ = 0;
};

class FakeDaemon {
 public:
  // Answers to a message besides the welcome; called on the daemon's thread.
  using Answers = std::function<std::vector<attach::ToProcess>(const attach::ToDaemon&)>;

  explicit FakeDaemon(const std::string& path, Answers answers = nullptr, bool welcomes = true)
      : path_(path), answers_(std::move(answers)), welcomes_(welcomes) {
    wake_.Reset(::eventfd(0, EFD_CLOEXEC));
    listener_.Reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    std::filesystem::remove(path);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~FakeDaemon() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    Wake();
    thread_.join();
    std::filesystem::remove(path_);
  }

  struct Heard {
    int connection = 0;
    attach::ToDaemon message;
  };
  // The n-th (from 0) message of this kind, from whatever connection; fails when it does not come.
  template <class Message>
  Message Expect(size_t n = 0, int* connection = nullptr) {
    std::unique_lock lock(mutex_);
    const Message* found = nullptr;
    changed_.wait_for(lock, kPatience, [&] {
      size_t seen = 0;
      for (const Heard& heard : heard_) {
        const auto* message = std::get_if<Message>(&heard.message);
        if (message == nullptr || seen++ < n) continue;
        if (connection != nullptr) *connection = heard.connection;
        found = message;
        return true;
      }
      return false;
    });
    EXPECT_NE(found, nullptr) << "message " << n << " of its kind did not come";
    return found == nullptr ? Message{} : *found;
  }
  template <class Message>
  size_t Count() {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const Heard& heard : heard_) count += std::holds_alternative<Message>(heard.message);
    return count;
  }
  // -1 = the newest connection.
  void Send(const attach::ToProcess& message, int connection = -1) {
    SendRaw(attach::Encode(message), connection);
  }
  void SendRaw(const std::string& packet, int connection = -1) {
    const std::lock_guard lock(mutex_);
    if (connections_.empty()) return;
    const auto& to = connection < 0 ? connections_.rbegin()->second : connections_[connection];
    ::send(to.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
  }
  void DropConnections() {
    const std::lock_guard lock(mutex_);
    drop_ = true;
    Wake();
  }
  bool ExpectClosed(int connection) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return connections_.count(connection) == 0; });
  }
  // Of the n-th connection that brought one.
  std::unique_ptr<RingView> Ring(size_t n = 0) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return rings_.size() > n; }));
    return std::make_unique<RingView>(rings_.at(n).get());
  }
  // The n-th descriptor of all that were received.
  int RingFd(size_t n = 0) {
    const std::lock_guard lock(mutex_);
    return rings_.at(n).get();
  }
  size_t RingCount() {
    const std::lock_guard lock(mutex_);
    return rings_.size();
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    EXPECT_EQ(::write(wake_.get(), &one, sizeof one), 8);
  }
  void Run() {
    for (;;) {
      std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      std::vector<int> ids;
      {
        const std::lock_guard lock(mutex_);
        if (ending_) return;
        if (std::exchange(drop_, false)) connections_.clear();
        for (const auto& [id, fd] : connections_) {
          ids.push_back(id);
          polled.push_back({fd.get(), POLLIN, 0});
        }
        changed_.notify_all();
      }
      ::poll(polled.data(), polled.size(), -1);
      if (polled[1].revents != 0) {
        uint64_t count = 0;
        EXPECT_EQ(::read(wake_.get(), &count, sizeof count), 8);
      }
      if (polled[0].revents != 0) {
        UniqueFd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const std::lock_guard lock(mutex_);
        connections_[next_id_++] = std::move(accepted);
      }
      for (size_t i = 0; i < ids.size(); ++i) {
        if (polled[i + 2].revents != 0) Receive(ids[i], polled[i + 2].fd);
      }
    }
  }
  void Receive(int id, int fd) {
    std::string packet(attach::kMaxPacket, '\0');
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    std::unique_lock lock(mutex_);
    if (got <= 0) {
      connections_.erase(id);
      return;
    }
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(header), sizeof passed);
      rings_.emplace_back(passed);
    }
    packet.resize(static_cast<size_t>(got));
    auto read = attach::ParseToDaemon(packet);
    EXPECT_TRUE(read.ok()) << packet;
    if (!read.ok()) return;
    heard_.push_back({id, *read});
    changed_.notify_all();
    lock.unlock();
    if (welcomes_ && std::holds_alternative<attach::Hello>(*read)) {
      attach::Welcome welcome;
      welcome.daemon = "fake";
      welcome.attach_id = static_cast<uint64_t>(id) + 1;
      welcome.takes_collector = true;
      Send(welcome, id);
    }
    if (answers_ == nullptr) return;
    for (const attach::ToProcess& answer : answers_(*read)) Send(answer, id);
  }

  const std::string path_;
  const Answers answers_;
  const bool welcomes_;
  UniqueFd listener_, wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  bool drop_ = false;
  int next_id_ = 0;
  std::map<int, UniqueFd> connections_;
  std::vector<Heard> heard_;
  std::vector<UniqueFd> rings_;
  std::thread thread_;
};

// A folder, a clean environment, and a library that is shut down afterwards.
class LibprofdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PROFD_ATTACH_SOCKET", path_.c_str(), 1);
    for (const char* name : {"PROFD_DISABLE", "PROFD_COLLECT", "PROFILING_OPTIONS", "PROFILING_MODE"}) {
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    profd_shutdown();
  }

  // profd_init, and the daemon has answered.
  static void Attach(const profd_config* config = nullptr) {
    ASSERT_EQ(profd_init(config), PROFD_OK) << profd_last_error();
    ASSERT_EQ(profd_attach(PatienceMs()), PROFD_OK) << profd_last_error();
  }
  // The process is attached to it from its begin on.
  struct AttachedDaemon : FakeDaemon {
    explicit AttachedDaemon(const std::string& path, Answers answers = nullptr) : FakeDaemon(path, std::move(answers)) { Attach(); }
  };
  static uint32_t PatienceMs() {
    return static_cast<uint32_t>(std::chrono::milliseconds(kPatience).count());
  }
  static attach::Reply Reply(uint64_t seq, const std::string& session_id,
                             const std::string& state = "running") {
    attach::Reply reply;
    reply.seq = seq;
    reply.session.emplace();
    reply.session->session_id = session_id;
    reply.session->state = state;
    return reply;
  }

  TempDir folder_;
  const std::string path_ = folder_ / "a";
};

}  // namespace profd::lib
