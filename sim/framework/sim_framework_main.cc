// sim_framework LAYOUT FOLDER [DAMAGE [raw|counter [SEED [OPERATORS]]]]: writes what a framework's profiler leaves, and
// beside it truth.jsonl.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "sim/framework/layouts.h"

namespace profd::sim::framework {
namespace {

constexpr int kUsage = 2;

bool Write(const std::filesystem::path& path, const std::string& bytes) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return true;
  std::fprintf(stderr, "sim_framework: cannot write %s\n", path.c_str());
  return false;
}

bool Read(int argc, char** argv, Spec* spec) {
  if (argc < 3 || argc > 7 || !LayoutOf(argv[1], &spec->layout)) return false;
  if (argc > 3 && !DamageOf(argv[3], &spec->damage)) return false;
  const std::string_view clock = argc > 4 ? argv[4] : "raw";
  spec->counter = clock == "counter";
  if (clock != "raw" && clock != "counter") return false;
  if (argc > 5 && !ParseNumber(std::string_view(argv[5]), &spec->seed)) return false;
  return argc < 7 || (ParseNumber(std::string_view(argv[6]), &spec->operators) && spec->operators <= 1'000'000);
}

int Main(int argc, char** argv) {
  Spec spec;
  if (!Read(argc, argv, &spec)) {
    std::fputs(
        "usage: sim_framework torch|torch-57|mindspore|mindspore-57|mindspore-73|mindspore-74 FOLDER\n"
        "                     [none|cut|length|names [raw|counter [SEED [OPERATORS]]]]\n",
        stderr);
    return kUsage;
  }
  const Directory made = Make(spec);
  const std::filesystem::path folder = argv[2];
  for (const auto& [name, bytes] : made.files) {
    if (!Write(folder / name, bytes)) return 1;
  }
  return Write(folder / "truth.jsonl", made.truth) ? 0 : 1;
}

}  // namespace
}  // namespace profd::sim::framework

int main(int argc, char** argv) { return profd::sim::framework::Main(argc, argv); }
