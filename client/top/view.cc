#include "client/top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace profd::client::top {
namespace {

constexpr size_t kMaxFilter = 128;
constexpr std::array<int64_t, 7> kIntervalsMs = {100, 200, 500, 1000, 2000, 5000, 10'000};

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

void ScrollBy(int rows, View* view) { view->scroll = std::max(0, view->scroll + rows); }

void ToggleHelp(View* view) { view->help = !view->help; }

struct Binding {
  char letter;
  void (*press)(View* view);
};
constexpr auto kLetters = std::to_array<Binding>({
    {'s', [](View* view) { StepSort(true, view); }},
    {'S', [](View* view) { StepSort(false, view); }},
    {'i', [](View* view) { SortBy(std::nullopt, view); }},
    {'u', [](View* view) { SortBy(Measure::kUtilization, view); }},
    {'m', [](View* view) { SortBy(Measure::kHbmUsed, view); }},
    {'p', [](View* view) { SortBy(Measure::kPower, view); }},
    {'t', [](View* view) { SortBy(Measure::kTemperature, view); }},
    {'r', [](View* view) { view->descending = !view->descending; }},
    {' ', [](View* view) { view->paused = !view->paused; }},
    {'g', [](View* view) { StepGraph(true, view); }},
    {'G', [](View* view) { StepGraph(false, view); }},
    {'/', [](View* view) { view->typing = view->filter; }},
    {'+', [](View* view) { StepInterval(true, view); }},
    {'-', [](View* view) { StepInterval(false, view); }},
    {'h', ToggleHelp},
    {'?', ToggleHelp},
    {'n', [](View* view) { view->process = view->process ? *view->process + 1 : 0; }},
    {'N', [](View* view) { view->process = view->process ? *view->process - 1 : -1; }},
    {'k', [](View* view) { ScrollBy(-1, view); }},
    {'j', [](View* view) { ScrollBy(1, view); }},
});

Effect PressLetter(char letter, View* view) {
  if (letter == 'q') return Effect::kQuit;
  const auto* const binding = std::ranges::find(kLetters, letter, &Binding::letter);
  if (binding == kLetters.end()) return Effect::kNone;
  binding->press(view);
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
      ScrollBy(-1, view);
      break;
    case Key::kDown:
      ScrollBy(1, view);
      break;
    case Key::kPageUp:
      ScrollBy(-kPage, view);
      break;
    case Key::kPageDown:
      ScrollBy(kPage, view);
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
