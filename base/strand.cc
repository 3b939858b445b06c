#include "base/strand.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/manual_executor.h"

namespace profd {

namespace asio = boost::asio;

// The timers of a manual executor, by the instant they are set for.
struct ManualExecutor::Time {
  struct Wait {
    std::weak_ptr<Timer::Impl> timer;
    uint64_t generation = 0;
  };
  ManualClock& clock;
  const std::thread::id thread = std::this_thread::get_id();
  std::multimap<int64_t, Wait> waits = {};
};

struct Executor::Impl {
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::vector<std::thread> threads;
  std::shared_ptr<ManualExecutor::Time> manual;  // null: real time
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
  explicit Impl(Executor::Impl& executor)
      : strand(executor.context.get_executor()), manual(executor.manual) {}
  bool RunsHere() const {
    if (manual != nullptr && std::this_thread::get_id() == manual->thread) return true;
    return strand.running_in_this_thread() || strand.get_inner_executor().context().stopped();
  }
  asio::strand<asio::io_context::executor_type> strand;
  std::shared_ptr<ManualExecutor::Time> manual;
};

Strand::Strand(Executor& executor) : impl_(std::make_shared<Impl>(*executor.impl_)) {}
Strand::~Strand() = default;

void Strand::Post(std::function<void()> task) { asio::post(impl_->strand, std::move(task)); }

void Strand::RunAndWait(const std::function<void()>& task) {
  auto done = std::make_shared<std::promise<void>>();
  Post([&task, done] {
    task();
    done->set_value();
  });
  done->get_future().wait();
}

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

  void Run(uint64_t of_generation) {
    if (generation != of_generation) return;
    std::function<void()> run = std::move(callback);
    callback = nullptr;
    run();
  }
};

Timer::Timer(Strand& strand) : impl_(std::make_shared<Impl>(strand.impl_)) {}

Timer::~Timer() { Cancel(); }

void Timer::At(int64_t steady_ns, std::function<void()> callback) {
  DCHECK_ON(*impl_->strand);
  impl_->callback = std::move(callback);
  uint64_t generation = ++impl_->generation;
  if (const auto& manual = impl_->strand->manual) {
    manual->waits.emplace(steady_ns, ManualExecutor::Time::Wait{impl_, generation});
    return;
  }
  impl_->timer.expires_at(
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(steady_ns)));
  impl_->timer.async_wait([impl = impl_, generation](const boost::system::error_code& error) {
    if (!error) impl->Run(generation);
  });
}

void Timer::After(int64_t delay_ns, std::function<void()> callback) {
  const auto& manual = impl_->strand->manual;
  At((manual != nullptr ? manual->clock.SteadyNs() : SystemClock().SteadyNs()) + delay_ns,
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

ManualExecutor::ManualExecutor(ManualClock& clock)
    : executor_("manual", 0), time_(std::make_shared<Time>(Time{clock})) {
  executor_.impl_->manual = time_;
}

ManualExecutor::~ManualExecutor() = default;

bool ManualExecutor::FireNext(int64_t until_ns) {
  while (!time_->waits.empty()) {
    auto [due_ns, wait] = *time_->waits.begin();
    std::shared_ptr<Timer::Impl> timer = wait.timer.lock();
    const bool cancelled = timer == nullptr || timer->generation != wait.generation;
    if (!cancelled && due_ns > until_ns) return false;
    time_->waits.erase(time_->waits.begin());
    if (cancelled) continue;
    time_->clock.Advance(std::max<int64_t>(0, due_ns - time_->clock.SteadyNs()));
    asio::post(timer->strand->strand,
               [timer, generation = wait.generation] { timer->Run(generation); });
    return true;
  }
  return false;
}

void ManualExecutor::RunReady() { Advance(0); }

void ManualExecutor::Advance(int64_t ns) {
  const int64_t until_ns = time_->clock.SteadyNs() + ns;
  do {
    executor_.impl_->context.poll();
  } while (FireNext(until_ns));
  time_->clock.Advance(std::max<int64_t>(0, until_ns - time_->clock.SteadyNs()));
}

bool ManualExecutor::RunUntil(const std::function<bool()>& condition) {
  constexpr std::chrono::seconds kPatience{30};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (RunReady(); !condition(); RunReady()) {
    if (std::chrono::steady_clock::now() > end) return false;
    executor_.impl_->context.run_one_for(std::chrono::milliseconds(1));
  }
  return true;
}

size_t ManualExecutor::timers() const {
  return static_cast<size_t>(std::ranges::count_if(time_->waits, [](const auto& entry) {
    std::shared_ptr<Timer::Impl> timer = entry.second.timer.lock();
    return timer != nullptr && timer->generation == entry.second.generation &&
           timer->callback != nullptr;
  }));
}

}  // namespace profd
