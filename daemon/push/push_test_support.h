// A receiver of pushes on a port of its own: answers each connection with the next of `answers`, the last
// one again and again, and keeps what was received.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace profd::testing {

class Receiver {
 public:
  // An empty answer: none at all, the connection stays open.
  explicit Receiver(std::vector<std::string> answers) : answers_(std::move(answers)) {
    ::signal(SIGPIPE, SIG_IGN);
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 16) != 0) {
      std::abort();
    }
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Receiver() {
    stop_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  uint16_t port() const { return port_; }
  // The requests so far, at least so many unless it takes a minute.
  std::vector<std::string> Requests(size_t least) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::seconds(60), [&] { return requests_.size() >= least; });
    return requests_;
  }

 private:
  static size_t LengthOf(const std::string& head) {
    const size_t at = head.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + 16, nullptr, 10);
  }

  void Run() {
    std::vector<UniqueFd> silent;
    for (size_t next = 0; !stop_; ++next) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.valid()) return;
      std::string request;
      size_t whole = std::string::npos;
      char part[65536];
      while (request.size() < whole) {
        const ssize_t got = ::recv(fd.get(), part, sizeof part, 0);
        if (got <= 0) break;
        request.append(part, static_cast<size_t>(got));
        const size_t end = request.find("\r\n\r\n");
        if (end != std::string::npos) whole = end + 4 + LengthOf(request);
      }
      const std::string& answer = answers_[std::min(next, answers_.size() - 1)];
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(std::move(request));
      }
      came_.notify_all();
      if (answer.empty()) {
        silent.push_back(std::move(fd));
      } else {
        (void)::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    }
  }

  const std::vector<std::string> answers_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards requests_
  std::condition_variable came_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

inline std::string BodyOf(const std::string& request) { return request.substr(request.find("\r\n\r\n") + 4); }

}  // namespace profd::testing
