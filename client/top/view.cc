#include "client/top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace profd::client::top {
namespace {

constexpr size_t kMaxFilter = 128;
constexpr std::array<int64_t, 7> kIntervalsMs = {100, 200, 500, 1000, 2000, 5000, 10'000};

// In the order `s` goes through them; the id is first.
constexpr std::array<Measure, 10> kSortable = {
    Measure::kUtilization,  Measure::kHbmUsed,       Measure::kPower, Measure::kTemperature,
    Measure::kFrequency,    Measure::kHccs,          Measure::kRoce,  Measure::kPcie,
    Measure::kHbmBandwidth, Measure::kHbmTemperature};

template <class T, size_t N>
size_t IndexOf(const std::array<T, N>& list, T item) {
  return static_cast<size_t>(std::ranges::find(list, item) - list.begin());
}

void SortBy(std::optional<Measure> measure, View* view) {
  view->sort = measure;
  view->descending = measure.has_value();
}

void StepSort(bool forward, View* view) {
  size_t count = kSortable.size() + 1;
  size_t at = view->sort ? IndexOf(kSortable, *view->sort) + 1 : 0;
  at = (at + (forward ? 1 : count - 1)) % count;
  SortBy(at == 0 ? std::nullopt : std::optional<Measure>(kSortable[at - 1]), view);
}

void StepGraph(bool forward, View* view) {
  size_t count = kSortable.size();
  size_t at = IndexOf(kSortable, view->graph);
  view->graph = kSortable[(at + (forward ? 1 : count - 1)) % count];
}

void StepInterval(bool faster, View* view) {
  if (faster) {
    auto next = std::find_if(kIntervalsMs.rbegin(), kIntervalsMs.rend(),
                             [&](int64_t ms) { return ms < view->interval_ms; });
    if (next != kIntervalsMs.rend()) view->interval_ms = *next;
  } else {
    auto next = std::ranges::find_if(kIntervalsMs, [&](int64_t ms) { return ms > view->interval_ms; });
    if (next != kIntervalsMs.end()) view->interval_ms = *next;
  }
}

void EraseLast(std::string* text) {
  while (!text->empty()) {
    bool tail = (static_cast<unsigned char>(text->back()) & 0xc0) == 0x80;
    text->pop_back();
    if (!tail) break;
  }
}

Effect PressWhileTyping(const KeyPress& press, View* view) {
  std::string& text = *view->typing;
  switch (press.key) {
    case Key::kText:
      if (text.size() + press.text.size() <= kMaxFilter) text += press.text;
      break;
    case Key::kBackspace:
      EraseLast(&text);
      break;
    case Key::kEnter:
      view->filter = text;
      view->typing.reset();
      view->scroll = 0;
      break;
    case Key::kEscape:
      view->typing.reset();
      break;
    case Key::kInterrupt:
      return Effect::kQuit;
    default:
      return Effect::kNone;
  }
  return Effect::kDraw;
}

// Letters that sort; false for others.
bool PressSort(char letter, View* view) {
  switch (letter) {
    case 's':
      StepSort(true, view);
      break;
    case 'S':
      StepSort(false, view);
      break;
    case 'i':
      SortBy(std::nullopt, view);
      break;
    case 'u':
      SortBy(Measure::kUtilization, view);
      break;
    case 'm':
      SortBy(Measure::kHbmUsed, view);
      break;
    case 'p':
      SortBy(Measure::kPower, view);
      break;
    case 't':
      SortBy(Measure::kTemperature, view);
      break;
    case 'r':
      view->descending = !view->descending;
      break;
    default:
      return false;
  }
  return true;
}

Effect PressLetter(char letter, View* view) {
  if (PressSort(letter, view)) return Effect::kDraw;
  switch (letter) {
    case 'q':
      return Effect::kQuit;
    case ' ':
      view->paused = !view->paused;
      break;
    case 'g':
      StepGraph(true, view);
      break;
    case 'G':
      StepGraph(false, view);
      break;
    case '/':
      view->typing = view->filter;
      break;
    case '+':
      StepInterval(true, view);
      break;
    case '-':
      StepInterval(false, view);
      break;
    case 'h':
    case '?':
      view->help = !view->help;
      break;
    case 'n':
      view->process = view->process ? *view->process + 1 : 0;
      break;
    case 'N':
      view->process = view->process ? *view->process - 1 : -1;
      break;
    case 'k':
      view->scroll = std::max(0, view->scroll - 1);
      break;
    case 'j':
      ++view->scroll;
      break;
    default:
      return Effect::kNone;
  }
  return Effect::kDraw;
}

}  // namespace

Effect Press(const KeyPress& press, View* view) {
  if (view->typing) return PressWhileTyping(press, view);
  constexpr int kPage = 10;
  switch (press.key) {
    case Key::kText:
      if (press.text.size() != 1) return Effect::kNone;
      return PressLetter(press.text[0], view);
    case Key::kInterrupt:
      return Effect::kQuit;
    case Key::kRedraw:
      return Effect::kRedraw;
    case Key::kEscape:
      view->help = false;
      view->filter.clear();
      view->process.reset();
      break;
    case Key::kTab:
      view->panel = static_cast<Panel>((static_cast<int>(view->panel) + 1) % 4);
      view->scroll = 0;
      break;
    case Key::kRight:
    case Key::kLeft:
      StepSort(press.key == Key::kRight, view);
      break;
    case Key::kUp:
      view->scroll = std::max(0, view->scroll - 1);
      break;
    case Key::kDown:
      ++view->scroll;
      break;
    case Key::kPageUp:
      view->scroll = std::max(0, view->scroll - kPage);
      break;
    case Key::kPageDown:
      view->scroll += kPage;
      break;
    case Key::kHome:
      view->scroll = 0;
      break;
    default:
      return Effect::kNone;
  }
  return Effect::kDraw;
}

Status ParseSort(std::string_view text, View* view) {
  size_t colon = text.find(':');
  std::string_view word = text.substr(0, colon);
  std::string_view order = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  std::string words = "id";
  bool found = word == "id";
  if (found) SortBy(std::nullopt, view);
  for (Measure measure : kSortable) {
    words += fmt::format(", {}", InfoOf(measure).word);
    if (InfoOf(measure).word != word) continue;
    SortBy(measure, view);
    found = true;
  }
  bool ordered = colon == std::string_view::npos || order == "asc" || order == "desc";
  if (!found || !ordered) {
    return InvalidArgument(fmt::format(
        "\"{}\": must be one of {}, optionally followed by :asc or :desc", text, words));
  }
  if (!order.empty()) view->descending = order == "desc";
  return Status::Ok();
}

std::string_view SortWord(const View& view) {
  return view.sort ? InfoOf(*view.sort).word : std::string_view("id");
}

}  // namespace profd::client::top
