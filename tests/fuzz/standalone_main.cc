// Stands in for libFuzzer where the compiler has none: runs the target over its committed corpus
// and over a fixed number of mutations of it, the same ones every time. usage: fuzz_NAME MUTATIONS
// DIRECTORY
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Null where the target has none of its own.
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                        unsigned seed);

namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> ReadCorpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// One damage of the kinds that break parsers: flipped and extreme bytes, cuts, repeats, splices.
void Damage(Bytes& bytes, const std::vector<Bytes>& corpus, std::mt19937& random) {
  static constexpr uint8_t kTelling[] = {0, 1, 0x7F, 0x80, 0xFF, '\n', ' ', '-', '9', '"', '='};
  if (bytes.empty()) {
    bytes.push_back(static_cast<uint8_t>(random()));
    return;
  }
  const size_t at = random() % bytes.size();
  const size_t length = std::min<size_t>(bytes.size() - at, random() % 32 + 1);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(length);
  switch (random() % 7) {
    case 0:
      *begin ^= static_cast<uint8_t>(1u << random() % 8);
      break;
    case 1:
      *begin = static_cast<uint8_t>(random());
      break;
    case 2:
      std::fill(begin, end, kTelling[random() % std::size(kTelling)]);
      break;
    case 3:
      bytes.erase(begin, end);
      break;
    case 4:
      bytes.resize(at);
      break;
    case 5: {
      const Bytes piece(begin, end);
      bytes.insert(begin, piece.begin(), piece.end());
      break;
    }
    default: {
      const Bytes& other = corpus[random() % corpus.size()];
      if (other.empty()) break;
      const size_t from = random() % other.size();
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
      const auto count = static_cast<std::ptrdiff_t>(std::min<size_t>(other.size() - from, 256));
      bytes.insert(begin, first, first + count);
      break;
    }
  }
}

// What the target itself changes; every other time, damage.
void Change(Bytes& bytes, const std::vector<Bytes>& corpus, std::mt19937& random) {
  if (LLVMFuzzerCustomMutator == nullptr || random() % 2 == 0) {
    Damage(bytes, corpus, random);
    return;
  }
  const size_t size = bytes.size();
  bytes.resize(size + 1024);
  bytes.resize(
      LLVMFuzzerCustomMutator(bytes.data(), size, bytes.size(), static_cast<unsigned>(random())));
}

int Run(const std::string& folder, unsigned long mutations) {
  const std::vector<Bytes> corpus = ReadCorpus(folder);
  if (corpus.empty()) {
    std::fprintf(stderr, "no corpus in %s\n", folder.c_str());
    return 1;
  }
  // As libFuzzer does: the exact size on the heap, so that AddressSanitizer sees the first byte
  // beyond.
  auto run = [](const Bytes& bytes) {
    const Bytes exact(bytes);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  };
  run({});
  for (const Bytes& seed : corpus) run(seed);
  std::mt19937 random(1);
  for (unsigned long i = 0; i < mutations; ++i) {
    Bytes bytes = corpus[i % corpus.size()];
    for (unsigned long n = random() % 4 + 1; n > 0; --n) Change(bytes, corpus, random);
    run(bytes);
  }
  std::printf("%zu seeds and %lu mutations survived\n", corpus.size(), mutations);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MUTATIONS DIRECTORY\n", argv[0]);
    return 2;
  }
  try {
    return Run(argv[2], std::strtoul(argv[1], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "an exception got out: %s\n", error.what());
    return 1;
  }
}
