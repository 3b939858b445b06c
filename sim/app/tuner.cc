#include "sim/app/tuner.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>
#include <vector>

#include "base/text.h"
#include "sim/noise.h"

namespace profd::sim::app {
namespace {

constexpr std::string_view kBankFile = "/sim_bank.tsv";
// What tuning leaves of an operator's time; what gains less than the least is not kept.
constexpr double kBest = 0.45, kWorst = 1.0, kLeastGain = 0.03;

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 1469598103934665603u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

double ShareOf(const Job& job, const std::string& key) {
  return kBest + (kWorst - kBest) * Unit(Hash(job.seed, HashOf(key), 0, 11));
}

std::string Timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y%m%d%H%M%S}{:03}", fmt::localtime(std::chrono::system_clock::to_time_t(now)), ms);
}

struct Item {
  std::string key;   // in the bank
  std::string name;  // as a profile has it
  std::string type;
  double us = 0;
  bool fails = false;
};

// The operators of the step's two graphs: forward and backward, optimizer.
std::vector<std::vector<Item>> GraphsOf(const Job& job) {
  std::vector<std::vector<Item>> graphs(2);
  const auto add = [](std::vector<Item>* graph, const std::string& layer, const std::string& instance, const Operator& op) {
    const bool fails = op.task_type == prof::kTaskAicpu;
    graph->push_back({layer + op.name, instance + op.name, op.type, static_cast<double>(op.forward_ns) / 1e3, fails});
    if (op.backward_ns > 0) graph->push_back({layer + op.name + "_grad", instance + op.name + "_grad", op.type, static_cast<double>(op.backward_ns) / 1e3, fails});
  };
  for (const Layer& layer : job.layers) {
    for (const Operator& op : layer.operators) add(&graphs[0], layer.name + "/", layer.name + "_0/", op);
  }
  for (const Operator& op : job.optimizer) add(&graphs[1], "", "", op);
  if (graphs[1].empty()) graphs.pop_back();
  return graphs;
}

class Tuner {
 public:
  Tuner(const Job& job, const TunerOptions& options, TunedShares bank)
      : job_(job), options_(options), bank_(std::move(bank)), timestamp_(Timestamp()),
        path_(fmt::format("{}/aoe_result_{}_{}_pid{}.json", options.work_path, options.subgraph ? "sgat" : "opat", timestamp_, ::getpid())) {}

  Status Run() {
    std::puts("[TFAdapter] in tune mode, training graph handled by tools.");
    std::fflush(stdout);
    done_ = "{\n";
    const auto graphs = GraphsOf(job_);
    for (size_t i = 0; i < graphs.size(); ++i) {
      std::puts("[AOE] Aoe tuning graph.");
      std::fflush(stdout);
      if (i > 0) done_ += ",\n";
      // All tasks of a thread have one key.
      done_ += fmt::format("\"report_{}_{}\": [\n", timestamp_, 140001);
      RETURN_IF_ERROR(options_.subgraph ? TuneSubgraphs(i) : TuneOperators(graphs[i], i));
    }
    RETURN_IF_ERROR(Write(done_ + "\n}\n"));
    return SaveBank();
  }

 private:
  void Work() const { std::this_thread::sleep_for(std::chrono::milliseconds(options_.operator_ms)); }

  // In place, as the tool does: a reader sees it at any moment.
  Status Write(const std::string& text) const {
    std::ofstream file(path_, std::ios::trunc | std::ios::binary);
    file << text << std::flush;
    return file ? Status::Ok() : Unavailable("cannot write " + path_);
  }
  std::string Basic(size_t number, bool ended) const {
    const std::string time = ended ? fmt::format(", \"tuning_time(s)\": {}", 1 + options_.operator_ms / 100) : "";
    return fmt::format("{{\"basic\": {{\"tuning_name\": \"{}_{}\"{}}}}},\n", job_.name, number, time);
  }

  Status TuneOperators(const std::vector<Item>& items, size_t number) {
    std::string rows;
    std::string failed;
    int add = 0, update = 0, reserved = 0, unsatisfied = 0;
    for (const Item& item : items) {
      Work();
      const auto known = bank_.find(item.key);
      const double share = ShareOf(job_, item.key);
      if (item.fails) {
        failed += fmt::format("{}\"{}\"", failed.empty() ? "" : ", ", item.name);
      } else if (known != bank_.end() && !options_.repeat) {
        ++reserved;
      } else if (known == bank_.end() && 1 - share < kLeastGain) {
        ++unsatisfied;
      } else {
        known == bank_.end() ? ++add : ++update;
        rows += (rows.empty() ? "" : ",\n") + Row(item, share, known != bank_.end());
        fresh_[item.key] = share;
      }
      RETURN_IF_ERROR(Write(done_ + Basic(number, false) + "{\"OPAT\": {\"opat_tuning_result\": \"tuning incomplete\",\n\"repo_modified_operators\": [\n" + rows));
    }
    done_ += Basic(number, true) +
             fmt::format("{{\"OPAT\": {{\"opat_tuning_result\": \"tuning {}\",\n\"repo_modified_operators\": [\n{}],\n", failed.empty() ? "successful" : "failed", rows) +
             Summary(add, reserved, unsatisfied, update) + (failed.empty() ? "" : ",\n\"tuning_failed_operators\": [" + failed + "]") + "}}]";
    return Write(done_);
  }

  static std::string Row(const Item& item, double share, bool known) {
    const double before = std::round(item.us * 1000) / 1000, after = std::max(std::round(item.us * share * 1000) / 1000, 0.001);
    const char* const modes[] = {"Schedule", "Format", "Impl"};
    return fmt::format("{{\"op_name\": \"{}\", \"op_type\": \"{}\", \"tune_performance\": {{\"{}\": {{\"performance_after_tune(us)\": {}, "
                       "\"performance_before_tune(us)\": {}, \"performance_improvement\": \"{:.2f}%\", \"update_mode\": \"{}\"}}}}}}",
                       item.name, item.type, modes[HashOf(item.key) % 3], after, before, (before - after) / after * 100, known ? "update" : "add");
  }

  // Its improvements are cut, and the comma between its lists is missing.
  Status TuneSubgraphs(size_t number) {
    if (number > 0) {
      done_ += Basic(number, true).substr(0, Basic(number, true).size() - 2) + "]";
      return Write(done_);
    }
    std::string add, update;
    double before_ms = 0, after_ms = 0;
    int added = 0, updated = 0, reserved = 0;
    for (const Layer& layer : job_.layers) {
      Work();
      double us = 0;
      for (const Operator& op : layer.operators) us += static_cast<double>(op.forward_ns + op.backward_ns) / 1e3 * layer.count;
      const std::string key = layer.name + "/";
      const bool known = bank_.contains(key);
      before_ms += us / 1e3;
      const double share = known && !options_.repeat ? 1 : std::min(ShareOf(job_, key), 1 - kLeastGain);
      after_ms += us * share / 1e3;
      if (share >= 1) {
        ++reserved;
        continue;
      }
      std::string& list = known ? update : add;
      known ? ++updated : ++added;
      list += fmt::format("{}{{{}, \"repo_key\": \"{}\"}}", list.empty() ? "" : ", ", Times("performance", us / 1e3, us * share / 1e3), HashOf(key));
      fresh_[key] = share;
      RETURN_IF_ERROR(Write(done_ + Basic(number, false) + "{\"SGAT\": {\"repo_modified_subgraphs\": {\"add_repo_subgraphs\": [" + add));
    }
    done_ += Basic(number, true) + "{\"SGAT\": {" + Model(before_ms, after_ms) + ",\n\"repo_modified_subgraphs\": {\"add_repo_subgraphs\": [" + add +
             "] \"update_repo_subgraphs\": [" + update + "]},\n" + Summary(added, reserved, 0, updated) + "}}]";
    return Write(done_);
  }
  static double Cut(double before, double after) { return std::trunc((before - after) / after * 1e4) / 100; }
  static double Six(double ms) { return std::round(ms * 1e6) / 1e6; }
  static std::string Times(const char* what, double before, double after) {
    return fmt::format("\"{0}_after_tune(ms)\": {1}, \"{0}_before_tune(ms)\": {2}, \"{0}_improvement\": \"{3:.2f}%\"", what, Six(after), Six(before),
                       Cut(Six(before), Six(after)));
  }
  static std::string Model(double before, double after) {
    return fmt::format("\"model_baseline_performance(ms)\": {}, \"model_performance_improvement\": \"{:.2f}%\", \"model_result_performance(ms)\": {}",
                       Six(before), Cut(Six(before), Six(after)), Six(after));
  }
  static std::string Summary(int add, int reserved, int unsatisfied, int update) {
    const int hit = reserved + update;
    return fmt::format("\"repo_summary\": {{\"repo_add_num\": {}, \"repo_hit_num\": {}, \"repo_reserved_num\": {}, \"repo_unsatisfied_num\": {}, "
                       "\"repo_update_num\": {}, \"total_num\": {}}}",
                       add, hit, reserved, unsatisfied, update, add + hit + unsatisfied);
  }

  Status SaveBank() {
    if (options_.bank.empty()) return Status::Ok();
    for (const auto& [key, share] : fresh_) bank_[key] = share;
    std::ofstream file(options_.bank + std::string(kBankFile), std::ios::trunc);
    for (const auto& [key, share] : bank_) file << key << '\t' << share << '\n';
    return file.flush() ? Status::Ok() : Unavailable("cannot write the bank in " + options_.bank);
  }

  const Job& job_;
  const TunerOptions& options_;
  TunedShares bank_;
  TunedShares fresh_;
  const std::string timestamp_;
  const std::string path_;
  std::string done_;  // of the file, what does not change any more
};

}  // namespace

Result<TunedShares> ReadBank(const std::string& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return NotFound("TUNE_BANK_PATH: " + folder + " is not there");
  TunedShares bank;
  std::ifstream file(folder + std::string(kBankFile));
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    double share = 0;
    if (tab == std::string::npos || !ParseNumber(std::string_view(line).substr(tab + 1), &share) || !(share > 0) || share > 1) {
      return InvalidArgument(fmt::format("the bank in {} cannot be read: {}", folder, line));
    }
    bank[line.substr(0, tab)] = share;
  }
  return bank;
}

void ApplyBank(const TunedShares& bank, Job* job) {
  const auto share = [&bank](const std::string& key) {
    const auto found = bank.find(key);
    return found == bank.end() ? 1.0 : found->second;
  };
  const auto apply = [&](const std::string& layer, Operator* op) {
    const double of_layer = layer.empty() ? 1 : share(layer);
    op->forward_ns = std::llround(static_cast<double>(op->forward_ns) * share(layer + op->name) * of_layer);
    op->backward_ns = std::llround(static_cast<double>(op->backward_ns) * share(layer + op->name + "_grad") * of_layer);
  };
  for (Layer& layer : job->layers) {
    for (Operator& op : layer.operators) apply(layer.name + "/", &op);
  }
  for (Operator& op : job->optimizer) apply("", &op);
}

Status Tune(const Job& job, const TunerOptions& options) {
  if (job.ranks() > 1) return InvalidArgument("a job of several ranks is not tuned");
  TunedShares bank;
  if (!options.bank.empty()) {
    Result<TunedShares> read = ReadBank(options.bank);
    if (!read.ok()) return read.status();
    bank = std::move(*read);
  }
  return Tuner(job, options, std::move(bank)).Run();
}

}  // namespace profd::sim::app
