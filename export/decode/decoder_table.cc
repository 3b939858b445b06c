#include <vector>

#include "base/text.h"
#include "export/decode/decoder_groups.h"
#include "export/decoder.h"

namespace profd::exporting {
namespace {

bool Matches(std::string_view pattern, std::string_view base) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == base;
  const std::string_view behind = pattern.substr(star + 1);
  if (base.size() <= star + behind.size() || !base.starts_with(pattern.substr(0, star)) || !base.ends_with(behind)) {
    return false;
  }
  const std::string_view digits = base.substr(star, base.size() - star - behind.size());
  return digits.size() <= 10 && IsDigits(digits);
}

}  // namespace

std::span<const DecoderSpec> Decoders() {
  static const std::vector<DecoderSpec> all = [] {
    std::vector<DecoderSpec> specs;
    for (std::span<const DecoderSpec> group : {
#define PROFD_GROUP(group) group(),
             PROFD_DECODER_GROUPS(PROFD_GROUP)
#undef PROFD_GROUP
         }) {
      specs.insert(specs.end(), group.begin(), group.end());
    }
    return specs;
  }();
  return all;
}

const DecoderSpec* FindDecoder(std::string_view base, Place::Kind kind, int chip) {
  const DecoderSpec* first = nullptr;
  for (const DecoderSpec& spec : Decoders()) {
    if (spec.kind != kind || !Matches(spec.base, base)) continue;
    if (chip >= 0 && chip < 32 && (spec.chips >> chip & 1) != 0) return &spec;
    if (first == nullptr) first = &spec;
  }
  return first;
}

}  // namespace profd::exporting
