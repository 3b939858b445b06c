#include "base/strand.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace profd {

namespace asio = boost::asio;

struct Executor::Impl {
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::vector<std::thread> threads;
};

Executor::Executor(std::string name, int threads) : impl_(std::make_shared<Impl>()) {
  for (int i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([context = &impl_->context, name] {
      ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
      context->run();
    });
  }
}

Executor::~Executor() { Stop(); }

void Executor::Stop() {
  impl_->work.reset();
  impl_->context.stop();
  for (std::thread& thread : impl_->threads) {
    if (thread.joinable()) thread.join();
  }
}

struct Strand::Impl {
  explicit Impl(asio::io_context& context) : strand(context.get_executor()) {}
  bool RunsHere() const {
    return strand.running_in_this_thread() || strand.get_inner_executor().context().stopped();
  }
  asio::strand<asio::io_context::executor_type> strand;
};

Strand::Strand(Executor& executor) : impl_(std::make_shared<Impl>(executor.impl_->context)) {}
Strand::~Strand() = default;

void Strand::Post(std::function<void()> task) { asio::post(impl_->strand, std::move(task)); }

bool Strand::RunsHere() const { return impl_->RunsHere(); }

void internal::DieOffStrand(const char* strand, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: not on the strand %s\n", file, line, strand);
  std::abort();
}

// Lives as long as a wait is pending, so that a completion that races with ~Timer finds memory and
// an out-of-date generation instead of a dangling callback.
struct Timer::Impl {
  explicit Impl(const std::shared_ptr<Strand::Impl>& owner) : strand(owner), timer(owner->strand) {}
  std::shared_ptr<Strand::Impl> strand;
  asio::basic_waitable_timer<std::chrono::steady_clock,
                             asio::wait_traits<std::chrono::steady_clock>,
                             asio::strand<asio::io_context::executor_type>>
      timer;
  std::function<void()> callback;
  uint64_t generation = 0;
};

Timer::Timer(Strand& strand) : impl_(std::make_shared<Impl>(strand.impl_)) {}

Timer::~Timer() { Cancel(); }

void Timer::At(int64_t steady_ns, std::function<void()> callback) {
  DCHECK_ON(*impl_->strand);
  impl_->callback = std::move(callback);
  uint64_t generation = ++impl_->generation;
  impl_->timer.expires_at(
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(steady_ns)));
  impl_->timer.async_wait([impl = impl_, generation](const boost::system::error_code& error) {
    if (error || impl->generation != generation) return;
    std::function<void()> run = std::move(impl->callback);
    impl->callback = nullptr;
    run();
  });
}

void Timer::After(int64_t delay_ns, std::function<void()> callback) {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  At(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() + delay_ns,
     std::move(callback));
}

void Timer::Cancel() {
  DCHECK_ON(*impl_->strand);
  ++impl_->generation;
  impl_->callback = nullptr;
  impl_->timer.cancel();
}

// Lives as long as a wait is pending, like a Timer's.
struct FdWatch::Impl {
  using Descriptor =
      asio::posix::basic_stream_descriptor<asio::strand<asio::io_context::executor_type>>;
  Impl(const std::shared_ptr<Strand::Impl>& owner, int fd)
      : strand(owner), descriptor(owner->strand) {
    boost::system::error_code error;
    descriptor.assign(fd, error);
  }
  static void Wait(const std::shared_ptr<Impl>& impl, Descriptor::wait_type what,
                   std::function<void()> callback) {
    impl->descriptor.async_wait(
        what, [impl, callback = std::move(callback)](const boost::system::error_code& error) {
          if (!error && !impl->cancelled) callback();
        });
  }
  std::shared_ptr<Strand::Impl> strand;
  Descriptor descriptor;
  bool cancelled = false;
};

FdWatch::FdWatch(Strand& strand, int fd) : impl_(std::make_shared<Impl>(strand.impl_, fd)) {}

FdWatch::~FdWatch() {
  impl_->cancelled = true;
  if (ok()) impl_->descriptor.release();
}

bool FdWatch::ok() const { return impl_->descriptor.is_open(); }

void FdWatch::WhenReadable(std::function<void()> callback) {
  Impl::Wait(impl_, Impl::Descriptor::wait_read, std::move(callback));
}

void FdWatch::WhenWritable(std::function<void()> callback) {
  Impl::Wait(impl_, Impl::Descriptor::wait_write, std::move(callback));
}

}  // namespace profd
