#include "daemon/jobs/attach_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "daemon/jobs/test_support.h"
#include "daemon/rpc/unix_listener.h"
#include "dump/test_support.h"

namespace profd {
namespace {

constexpr auto kDeadline = std::chrono::seconds(60);

// The process's end.
class Client {
 public:
  explicit Client(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    connected_ =
        ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  bool connected() const { return connected_; }
  bool Send(std::string_view bytes, std::vector<int> descriptors = {}) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 16)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
      std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
    }
    return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL) >= 0;
  }
  bool Send(const attach::ToDaemon& message, std::vector<int> descriptors = {}) {
    return Send(attach::Encode(message), std::move(descriptors));
  }
  // Nothing at the end of the connection.
  std::optional<attach::ToProcess> Receive() {
    std::string buffer(attach::kMaxPacket + 1, '\0');
    pollfd ready{fd_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 60'000) != 1) {
      ADD_FAILURE() << "nothing came";
      return std::nullopt;
    }
    ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return std::nullopt;
    auto parsed = attach::ParseToProcess(std::string_view(buffer).substr(0, static_cast<size_t>(size)));
    EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
    return parsed.ok() ? std::optional(*parsed) : std::nullopt;
  }
  template <class T>
  T Expect() {
    std::optional<attach::ToProcess> message = Receive();
    if (!message || !std::holds_alternative<T>(*message)) {
      ADD_FAILURE() << "another message, or the end";
      return {};
    }
    return std::get<T>(*message);
  }
  void ExpectEnd() { EXPECT_FALSE(Receive().has_value()); }
  int fd() const { return fd_.get(); }
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
  bool connected_ = false;
};

class AttachServerTest : public ::testing::Test {
 protected:
  AttachServerTest() : executor_("test", 1), control_(executor_) {
    options_.path = tmp_ / "attach.sock";
    options_.max_attached = 4;
  }
  ~AttachServerTest() override {
    if (server_ != nullptr) server_->Stop();
    executor_.Stop();
  }

  // Not the test itself: the strand may call it until the executor has stopped.
  struct Handler final : AttachServer::Handler {
    explicit Handler(AttachServerTest& t) : test(t) {}
    void OnHello(AttachArrival arrival) override {
      std::lock_guard lock(test.mutex_);
      test.arrivals_.push_back(std::move(arrival));
      if (test.welcome_) {
        attach::Welcome welcome;
        welcome.attach_id = test.arrivals_.back().id;
        test.server_->Send(welcome.attach_id, welcome);
        test.server_->Ready(welcome.attach_id);
      }
      test.changed_.notify_all();
    }
    void OnPacket(uint64_t, attach::ToDaemon message, CarriedByReport carried) override {
      std::lock_guard lock(test.mutex_);
      test.packets_.push_back(std::move(message));
      if (carried.activity != nullptr) test.activity_.push_back(std::move(carried.activity));
      if (carried.files != nullptr) test.files_.push_back(std::move(carried.files));
      test.changed_.notify_all();
    }
    void OnClosed(uint64_t id) override {
      std::lock_guard lock(test.mutex_);
      test.closed_.push_back(id);
      test.changed_.notify_all();
    }
    AttachServerTest& test;
  };

  void Listen() {
    std::string warning;
    auto server = AttachServer::Listen(options_, control_, clock_, handler_, &warning);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }
  void Start() {
    Listen();
    server_->Start();
  }
  template <class Condition>
  bool Wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, condition);
  }
  void StartCountingDisposed() {
    Listen();
    server_->SetDisposer([this](const UniqueFd&) {
      std::lock_guard lock(mutex_);
      ++disposed_;
      changed_.notify_all();
    });
    server_->Start();
  }
  Client Attached() {
    Client client(options_.path);
    EXPECT_TRUE(client.Send(attach::ToDaemon(attach::Hello{})));
    client.Expect<attach::Welcome>();
    return client;
  }

  TempDir tmp_;
  SystemClock clock_;
  Executor executor_;
  Strand control_;
  AttachServerOptions options_;
  Handler handler_{*this};
  std::unique_ptr<AttachServer> server_;
  bool welcome_ = true;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AttachArrival> arrivals_;
  std::vector<attach::ToDaemon> packets_;
  std::vector<std::shared_ptr<ActivityReader>> activity_;
  std::vector<std::shared_ptr<UniqueFd>> files_;
  std::vector<uint64_t> closed_;
  int disposed_ = 0;  // descriptors
};

// As a cleaner of temporary files does it.
TEST_F(AttachServerTest, ASocketThatWasRemovedOrReplacedIsBoundAgain) {
  Start();
  Client before = Attached();
  const std::string dead = options_.path + "2";
  std::string warning;
  UniqueFd(ListenUnix({dead, "", SOCK_SEQPACKET}, &warning).value());  // nothing answers there any more
  for (bool replaced : {false, true}) {
    if (replaced) std::filesystem::rename(dead, options_.path);
    if (!replaced) std::filesystem::remove(options_.path);
    server_->CheckPath();
    server_->Send(1, attach::Welcome{.attach_id = 1});  // after it, and on a connection that stays
    before.Expect<attach::Welcome>();
    Attached();
  }
  EXPECT_EQ(std::filesystem::status(options_.path).permissions(), std::filesystem::perms(0600));
  std::filesystem::remove(options_.path);
  std::filesystem::create_directory(options_.path);
  server_->Stop();
  EXPECT_TRUE(std::filesystem::is_directory(options_.path)) << "not the server's own";
}

TEST_F(AttachServerTest, ThePeerIsTakenFromTheKernel) {
  Start();
  Client client(options_.path);
  TestRing ring;
  attach::Hello hello;
  hello.job_id = "j";
  hello.has_ring = true;
  ASSERT_TRUE(client.Send(attach::ToDaemon(hello), {ring.fd().get()}));
  client.Expect<attach::Welcome>();
  ASSERT_TRUE(Wait([this] { return arrivals_.size() == 1; }));
  EXPECT_EQ(arrivals_[0].peer.pid, ::getpid());
  EXPECT_EQ(arrivals_[0].peer.uid, ::getuid());
  EXPECT_EQ(arrivals_[0].hello.job_id, "j");
  ASSERT_NE(arrivals_[0].ring, nullptr);
  EXPECT_EQ(arrivals_[0].ring->slots(), attach::kMinRingSlots);
  ASSERT_TRUE(client.Send(attach::ToDaemon(attach::StepReport{"s", 4, true})));
  ASSERT_TRUE(Wait([this] { return packets_.size() == 1; }));
  EXPECT_EQ(std::get<attach::StepReport>(packets_[0]).step, 4);
  client.Close();
  EXPECT_TRUE(Wait([this] { return closed_.size() == 1; }));
}

TEST_F(AttachServerTest, PacketsOfOneProcessStayInOrder) {
  Start();
  Client client = Attached();
  for (int64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(client.Send(attach::ToDaemon(attach::StepReport{"s", i, true})));
  }
  ASSERT_TRUE(client.Send(attach::ToDaemon(attach::Bye{})));
  client.Close();
  ASSERT_TRUE(Wait([this] { return closed_.size() == 1; }));
  ASSERT_EQ(packets_.size(), 101u);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(std::get<attach::StepReport>(packets_[i]).step, static_cast<int64_t>(i));
  }
}

TEST_F(AttachServerTest, TheFirstPacketIsAHello) {
  Start();
  for (std::string bytes : {std::string("garbage"), std::string("{}"),
                            attach::Encode(attach::ToDaemon(attach::Bye{})),
                            std::string(attach::kMaxPacket + 100, ' ')}) {
    Client client(options_.path);
    ASSERT_TRUE(client.Send(bytes));
    EXPECT_NE(client.Expect<attach::Refused>().message, "");
    client.ExpectEnd();
  }
  EXPECT_EQ(server_->counters().protocol_errors.load(), 4u);
  EXPECT_EQ(server_->counters().refused_hello.load(), 4u);
}

TEST_F(AttachServerTest, LaterNonsenseIsReportedAndBearableForAWhile) {
  Start();
  Client client = Attached();
  ASSERT_TRUE(client.Send("{\"type\":\"from the future\"}"));
  attach::Reply reply = client.Expect<attach::Reply>();
  EXPECT_EQ(reply.seq, 0u);
  EXPECT_NE(reply.code, 0);
  ASSERT_TRUE(client.Send(attach::ToDaemon(attach::Hello{})));
  EXPECT_NE(client.Expect<attach::Reply>().message.find("hello"), std::string::npos);
  for (int i = 0; i < 14; ++i) {
    ASSERT_TRUE(client.Send("x"));
    client.Expect<attach::Reply>();
  }
  ASSERT_TRUE(client.Send("x"));
  client.ExpectEnd();
  EXPECT_TRUE(Wait([this] { return closed_.size() == 1; }));
}

TEST_F(AttachServerTest, OnlyOneRingAndOnlyWithTheHello) {
  Start();
  TestRing ring;
  UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  attach::Hello hello;
  hello.has_ring = true;
  for (std::vector<int> wrong : {std::vector<int>{}, {file.get()}, {ring.fd().get(), ring.fd().get()}}) {
    Client client(options_.path);
    ASSERT_TRUE(client.Send(attach::ToDaemon(hello), wrong));
    EXPECT_EQ(client.Expect<attach::Refused>().code, 3);
    client.ExpectEnd();
  }
  Client many(options_.path);
  ASSERT_TRUE(many.Send(attach::ToDaemon(hello), std::vector<int>(16, file.get())));
  many.Expect<attach::Refused>();
  Client client = Attached();
  ASSERT_TRUE(client.Send(attach::ToDaemon(attach::StepReport{}), {file.get()}));
  EXPECT_EQ(client.Expect<attach::Reply>().code, 3);
}

TEST_F(AttachServerTest, ACollectorBringsItsRing) {
  Start();
  Client client = Attached();
  TestActivityRing ring;
  attach::CollectorReport report{"s", attach::CollectProvider::kMspti, attach::CollectState::kOn, 0, "", {attach::CollectKind::kKernel}, {}, "", true};
  ASSERT_TRUE(client.Send(attach::ToDaemon(report), {ring.fd().get()}));
  ASSERT_TRUE(Wait([&] { return packets_.size() == 1; }));
  EXPECT_EQ(std::get<attach::CollectorReport>(packets_[0]).state, attach::CollectState::kOn);
  ASSERT_EQ(activity_.size(), 1u);
  EXPECT_EQ(activity_[0]->capacity(), attach::kMinActivityBytes);
  report.has_ring = false;
  report.state = attach::CollectState::kSilent;
  ASSERT_TRUE(client.Send(attach::ToDaemon(report)));
  ASSERT_TRUE(Wait([&] { return packets_.size() == 2; }));
  EXPECT_EQ(activity_.size(), 1u);
  // Once in a connection.
  TestActivityRing another;
  report.has_ring = true;
  ASSERT_TRUE(client.Send(attach::ToDaemon(report), {another.fd().get()}));
  const attach::Reply refused = client.Expect<attach::Reply>();
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.message, ::testing::HasSubstr("has an activity ring already"));
  EXPECT_EQ(packets_.size(), 2u);
  Client second = Attached();
  ASSERT_TRUE(second.Send(attach::ToDaemon(report), {another.fd().get()}));
  EXPECT_TRUE(Wait([&] { return activity_.size() == 2; }));
}

TEST_F(AttachServerTest, RefusesInvalidActivityRings) {
  StartCountingDisposed();
  Client client = Attached();
  TestActivityRing ring;
  TestRing marks;
  UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const attach::CollectorReport report{"s", attach::CollectProvider::kMspti, attach::CollectState::kOn, 0, "", {}, {}, "", true};
  const std::vector<std::vector<int>> kWrong = {
      {}, {file.get()}, {marks.fd().get()}, {ring.fd().get(), ring.fd().get()}};
  for (const std::vector<int>& wrong : kWrong) {
    ASSERT_TRUE(client.Send(attach::ToDaemon(report), wrong));
    EXPECT_EQ(client.Expect<attach::Reply>().code, 3);
  }
  EXPECT_TRUE(Wait([&] { return disposed_ == 1; })) << "of a stranger, closed elsewhere";
  EXPECT_TRUE(packets_.empty());
}

TEST_F(AttachServerTest, ACollectorBringsItsFiles) {
  StartCountingDisposed();
  Client client = Attached();
  UniqueFd folder(::open(tmp_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  attach::CollectorReport report{.session_id = "s", .state = attach::CollectState::kFiles, .has_files = true};
  for (const std::vector<int>& wrong : {std::vector<int>{}, {folder.get(), folder.get()}}) {
    ASSERT_TRUE(client.Send(attach::ToDaemon(report), wrong));
    EXPECT_EQ(client.Expect<attach::Reply>().code, 3);
  }
  ASSERT_TRUE(Wait([&] { return disposed_ == 2; }));
  ASSERT_TRUE(client.Send(attach::ToDaemon(report), {folder.get()}));
  ASSERT_TRUE(Wait([&] { return files_.size() == 1; }));
  struct stat sent {}, got {};
  ASSERT_EQ(::fstat(folder.get(), &sent), 0);
  ASSERT_EQ(::fstat(files_[0]->get(), &got), 0);
  EXPECT_EQ(got.st_ino, sent.st_ino);
  // What is not taken is closed where that may wait.
  auto files = std::move(files_);
  files.clear();
  EXPECT_TRUE(Wait([&] { return disposed_ == 3; }));
}

TEST_F(AttachServerTest, StrangeDescriptorsAreClosedElsewhere) {
  StartCountingDisposed();
  UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Client client(options_.path);
  ASSERT_TRUE(client.Send("garbage", {file.get()}));
  client.Expect<attach::Refused>();
  EXPECT_TRUE(Wait([&] { return disposed_ == 1; }));
}

TEST_F(AttachServerTest, ThereIsALimit) {
  Start();
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Attached());
  Client fifth(options_.path);
  ASSERT_TRUE(fifth.Send(attach::ToDaemon(attach::Hello{})));
  const auto refused = fifth.Expect<attach::Refused>();
  EXPECT_EQ(refused.code, 8);
  EXPECT_EQ(refused.message, "4 processes are attached, the limit of this node (daemon.max_attached)");
  fifth.ExpectEnd();
  EXPECT_EQ(server_->counters().refused_limit.load(), 1u);
  clients.pop_back();
  ASSERT_TRUE(Wait([this] { return closed_.size() == 1; }));
  Attached();
  server_->Configure("", 0);
  Client none(options_.path);  // without a hello, until its deadline
  EXPECT_EQ(none.Expect<attach::Refused>().code, 8);
}

TEST_F(AttachServerTest, ClientsWithoutHelloAreDisconnected) {
  options_.hello_deadline_ns = 1;
  Start();
  Client client(options_.path);
  EXPECT_EQ(client.Expect<attach::Refused>().code, static_cast<int>(StatusCode::kDeadlineExceeded));
  client.ExpectEnd();
}

TEST_F(AttachServerTest, AHelloThatWaitsToBeReadIsInTime) {
  options_.hello_deadline_ns = 1;
  Listen();
  Client client(options_.path);
  ASSERT_TRUE(client.Send(attach::ToDaemon(attach::Hello{})));
  server_->Start();
  client.Expect<attach::Welcome>();
}

TEST_F(AttachServerTest, ClientsThatDoNotReadAreDisconnected) {
  Start();
  Client client = Attached();
  uint64_t id = arrivals_[0].id;
  attach::Reply reply;
  reply.message = std::string(60'000, 'x');
  for (int i = 0; i < 200 && server_->counters().slow_disconnects.load() == 0; ++i) {
    server_->Send(id, reply);
  }
  EXPECT_TRUE(Wait([this] { return closed_.size() == 1; }));
  EXPECT_EQ(server_->counters().slow_disconnects.load(), 1u);
}

// Each of them alone would be within its limit of 1 MiB.
TEST_F(AttachServerTest, WhatTheProcessesOfAUserDoNotReadIsLimited) {
  constexpr size_t kClients = 48;
  constexpr size_t kBytes = 120'000;
  options_.max_attached = 4 * kClients;
  Start();
  std::vector<Client> clients;
  for (size_t i = 0; i < kClients; ++i) clients.push_back(Attached());
  attach::Reply reply;
  reply.message = std::string(kBytes, 'x');
  // At least 6 of 8 are more than a socket holds.
  for (size_t i = 0; i < kClients; ++i) {
    for (int packet = 0; packet < 8; ++packet) server_->Send(arrivals_[i].id, reply);
  }
  static_assert(kClients * 6 * kBytes > AttachLink::kMaxQueuedOfUser && 8 * kBytes < AttachLink::kMaxQueuedBytes);
  EXPECT_TRUE(Wait([this] { return !closed_.empty(); }));
  EXPECT_GT(server_->counters().slow_disconnects.load(), 0u);
}

TEST_F(AttachServerTest, ClientsThatReadLateGetEverything) {
  Start();
  Client client = Attached();
  uint64_t id = arrivals_[0].id;
  attach::Reply reply;
  reply.message = std::string(60'000, 'x');
  for (uint64_t i = 1; i <= 12; ++i) {  // more than the socket holds
    reply.seq = i;
    server_->Send(id, reply);
  }
  for (uint64_t i = 1; i <= 12; ++i) EXPECT_EQ(client.Expect<attach::Reply>().seq, i);
  EXPECT_EQ(server_->counters().slow_disconnects.load(), 0u);
}

TEST_F(AttachServerTest, AFloodIsReadSlowlyAndCompletely) {
  Start();
  Client client = Attached();
  constexpr int kPackets = PacketAllowance::kBurst + 60;
  for (int i = 0; i < kPackets; ++i) {
    ASSERT_TRUE(client.Send(attach::ToDaemon(attach::StepReport{"s", i, true})));
  }
  EXPECT_TRUE(Wait([this] { return packets_.size() == kPackets; }));
}

TEST_F(AttachServerTest, NothingIsReadBeforeTheWelcome) {
  welcome_ = false;
  Start();
  Client client(options_.path);
  ASSERT_TRUE(client.Send(attach::ToDaemon(attach::Hello{})));
  ASSERT_TRUE(client.Send(attach::ToDaemon(attach::Bye{})));
  ASSERT_TRUE(Wait([this] { return arrivals_.size() == 1; }));
  {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(packets_.empty());
  }
  server_->Refuse(arrivals_[0].id, PermissionDenied("not you"));
  EXPECT_EQ(client.Expect<attach::Refused>().message, "not you");
  client.ExpectEnd();
}

TEST(PacketAllowance, RefillsWithTime) {
  PacketAllowance allowance;
  int64_t now = 1000 * kNsPerSecond;
  int taken = 0;
  while (allowance.Take(now)) ++taken;
  EXPECT_EQ(taken, PacketAllowance::kBurst);
  EXPECT_FALSE(allowance.Take(allowance.NextNs() - 1));
  EXPECT_TRUE(allowance.Take(allowance.NextNs()));
  taken = 0;
  now += kNsPerSecond;
  while (allowance.Take(now)) ++taken;
  EXPECT_NEAR(taken, PacketAllowance::kPerSecond, 1);
}

}  // namespace
}  // namespace profd
