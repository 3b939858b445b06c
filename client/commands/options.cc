#include "client/commands/options.h"

#include <fmt/format.h>

#include "client/render.h"
#include "proto/enum_word/enum_word.h"
#include "proto/options/options_message.h"

namespace profd::client {
namespace {

v1::ListOptionsResponse FromTable(const options::NodeSupport* node) {
  v1::ListOptionsResponse response;
  for (const options::Option& option : options::Table()) ToWire(option, node, response.add_options());
  if (node != nullptr) response.mutable_chips()->Assign(node->chip_names.begin(), node->chip_names.end());
  return response;
}

void Print(const Context& context, const v1::ListOptionsResponse& response) {
  std::ostream& out = context.io.out;
  const bool color = context.io.out_color();
  if (response.chips_size() > 0) {
    out << "chips " << Printable(fmt::format("{}", fmt::join(response.chips(), ", "))) << '\n';
  }
  for (const v1::OptionInfo& info : response.options()) {
    // Of a size the range names the unit already.
    std::string unit = info.unit().empty() || info.type() == v1::OptionInfo::TYPE_SIZE ? "" : " " + info.unit();
    std::string standard = info.default_value().empty() ? "off" : info.default_value();
    out << Printable(info.key()) << "  " << Paint(EnumWord(info.source()), Tone::kFaint, color)
        << (info.supported() ? "" : "  " + Paint("not here", Tone::kWarning, color)) << '\n';
    auto line = [&out](const std::string& text) { out << "    " << Printable(text) << '\n'; };
    line(info.effect());
    line(fmt::format("{}{}; default {}", info.range(), unit, standard));
    if (!info.conflicts().empty()) line(info.conflicts());
    if (!info.supported()) line(info.reason());
  }
}

}  // namespace

int RunListOptions(const Context& context, const ListOptionsOptions& options) {
  std::optional<options::NodeSupport> chip;
  if (options.chip) {
    if (!options.offline) return UsageError(context.io, "options", {"--chip needs --offline"});
    chip = options::SupportOfChip(*options.chip);
    if (!chip) {
      return UsageError(context.io, "options",
                        {fmt::format("unknown chip --chip \"{}\"; must be one of {}", *options.chip,
                                     fmt::join(options::ChipNames(), ", "))});
    }
  }
  v1::ListOptionsResponse response;
  if (options.offline) {
    response = FromTable(chip ? &*chip : nullptr);
  } else {
    auto answer = WithProgress(context, "asking", [&] { return context.api.ListOptions(); });
    if (!answer.ok()) return Fail(context, answer.status());
    response = std::move(*answer);
  }
  if (context.json) {
    PrintJson(context, ToJson(response));
  } else {
    Print(context, response);
  }
  return kExitOk;
}

}  // namespace profd::client
