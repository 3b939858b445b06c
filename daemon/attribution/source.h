// One source of names that is asked in rounds on a thread that may hang: when it is next asked, whether it
// answers, how long its last answer counts. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "driver/guarded_thread.h"

namespace profd {

struct SourceState {
  bool in_use = false;  // there is something to ask
  bool up = false;
  uint64_t errors = 0;
};

template <class Answer>
class Source {
 public:
  struct Options {
    std::string name;
    int64_t period_ns = 10 * kNsPerSecond;
    int64_t deadline_ns = 10 * kNsPerSecond;  // of a round, waiting for the thread included
  };
  using Notice = std::function<void(const std::string& source, const std::string& what)>;

  Source(Strand& control, const Clock& clock, GuardedThread& thread, Options options, Notice notice)
      : control_(control),
        clock_(clock),
        thread_(thread),
        options_(std::move(options)),
        notice_(std::move(notice)),
        self_(std::make_shared<Source*>(this)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  bool IsDue() const { return !running_ && clock_.SteadyNs() >= next_ns_; }

  // `ask` on the thread; `take` here, with an answer. kNotFound: there is nothing to ask.
  void Ask(std::function<Result<Answer>()> ask, std::function<void(Answer)> take) {
    running_ = true;
    next_ns_ = clock_.SteadyNs() + options_.period_ns;
    auto answered = [&control = control_, self = std::weak_ptr(self_), take = std::move(take)](const Result<Answer>& answer) {
      control.Post([self, answer, take] {
        if (auto source = self.lock()) (*source)->OnAnswer(answer, take);
      });
    };
    GuardedJob job = AskingJob<Answer>("a round of " + options_.name, std::move(ask), std::move(answered));
    job.deadline_steady_ns = clock_.SteadyNs() + options_.deadline_ns;
    thread_.Submit(std::move(job)).Ignore();  // `done` gets the error
  }

  // The last answer does not count any more: three rounds brought no other.
  bool IsStale() const {
    return answered_ns_ == 0 || clock_.SteadyNs() - answered_ns_ > 3 * options_.period_ns;
  }
  const SourceState& state() const { return state_; }
  const std::string& name() const { return options_.name; }

 private:
  void OnAnswer(const Result<Answer>& answer, const std::function<void(Answer)>& take) {
    running_ = false;
    bool was_up = std::exchange(state_.up, answer.ok());
    bool was_in_use = state_.in_use;
    if (answer.ok()) {
      state_.in_use = true;
      answered_ns_ = clock_.SteadyNs();
      if (was_in_use && !was_up) Say("answers again");
      take(*answer);
      return;
    }
    if (answer.status().code() == StatusCode::kNotFound) {
      // No listener: no failure unless there was one. What it reported no longer holds.
      if (state_.in_use) Say(answer.status().message());
      state_.in_use = false;
      answered_ns_ = 0;
      return;
    }
    state_.in_use = true;
    ++state_.errors;
    if (was_up || !was_in_use) Say(answer.status().message());
  }

  void Say(const std::string& what) {
    if (notice_) notice_(options_.name, what);
  }

  Strand& control_;
  const Clock& clock_;
  GuardedThread& thread_;
  const Options options_;
  const Notice notice_;
  SourceState state_;
  bool running_ = false;
  int64_t next_ns_ = 0;
  int64_t answered_ns_ = 0;
  std::shared_ptr<Source*> self_;  // what a late answer finds, or not
};

}  // namespace profd
