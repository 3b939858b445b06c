// Input: the terminal's size, then records of "what, length" (8 and 16 bits): messages of a daemon,
// keys, the end of a refresh interval. Every picture that comes of it is
// made of characters that stay in their place.
#include <google/protobuf/stubs/logging.h>

#include <string>
#include <utility>

#include "client/top/draw.h"
#include "client/top/keys.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::client::top {
namespace {

template <class Message>
bool Parse(std::string_view bytes, Message* out) {
  return out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void CheckFrame(const Frame& frame, Size size) {
  FUZZ_EXPECT(frame.size() == size);
  for (int y = 0; y < size.rows; ++y) {
    for (int x = 0; x < size.columns; ++x) {
      const char32_t c = frame.At(x, y).character;
      FUZZ_EXPECT(c == 0 || (c >= 0x20 && c != 0x7F && !(c >= 0x80 && c < 0xA0)));
      // The left half of a wide character is before its right one.
      FUZZ_EXPECT(c != 0 || x > 0);
    }
  }
}

class Show {
 public:
  explicit Show(Size size) : size_(size) {}

  void Take(uint8_t what, std::string_view bytes) {
    v1::Node node;
    v1::ListJobsResponse jobs;
    v1::ListSessionsResponse sessions;
    v1::SampleChunk chunk;
    switch (what % 7) {
      case 0: if (Parse(bytes, &node)) model_.SetNode(node); break;
      case 1: if (Parse(bytes, &jobs)) model_.SetJobs(std::move(jobs)); break;
      case 2: if (Parse(bytes, &sessions)) model_.SetSessions(std::move(sessions)); break;
      case 3: if (Parse(bytes, &chunk)) model_.Take(chunk, now_ns_); break;
      case 4: for (char c : bytes) Press(c); break;
      case 5: model_.Lose(std::string(bytes), now_ns_ + 1); break;
      default:
        now_ns_ += 1'000'000'000;
        model_.Roll(now_ns_);
        Draw();
        break;
    }
  }
  void End() {
    model_.Roll(now_ns_ + 1'000'000'000);
    Draw();
  }

 private:
  // A character, or one of the keys that are none.
  void Press(char c) {
    const bool text = c >= 0x20 && c < 0x7F;
    const int keys = static_cast<int>(Key::kRedraw) + 1;
    top::Press({text ? Key::kText : static_cast<Key>(static_cast<unsigned char>(c) % keys), std::string(text, c)},
               &view_);
  }
  void Draw() {
    Frame frame = top::Draw(model_, view_, size_, {"13:40:01", now_ns_});
    CheckFrame(frame, size_);
  }

  Size size_;
  Model model_;
  View view_;
  int64_t now_ns_ = 1'000'000'000;
};

}  // namespace
}  // namespace profd::client::top

void profd::fuzz::Run(Input input) {
  // A line for every text that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  const int columns = input.Take<uint8_t>();
  const int rows = input.Take<uint8_t>() % 80;
  client::top::Show show({columns, rows});
  while (!input.empty()) {
    const auto what = input.Take<uint8_t>();
    show.Take(what, input.TakePiece(input.Take<uint16_t>()));
  }
  show.End();
}
