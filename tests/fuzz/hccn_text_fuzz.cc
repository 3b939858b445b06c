// Input: what hccn_tool wrote, whatever it was asked.
#include <algorithm>
#include <cmath>

#include "driver/hccn_tool.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

// A value that is shown makes sense: finite, not negative, within what a port can have.
void CheckWithin(const std::optional<double>& value, double low, double high) {
  if (!value) return;
  FUZZ_EXPECT(std::isfinite(*value));
  FUZZ_EXPECT(*value >= low && *value <= high);
}

}  // namespace

void fuzz::Run(Input input) {
  const std::string_view text = input.rest();
  ParseHccnLink(text);
  ParseHccnLinkUps(text);
  CheckWithin(ParseHccnSpeed(text), 0, 1e18);
  const OpticalValues optical = ParseHccnOptical(text);
  CheckWithin(optical.temperature_celsius, -300, 300);
  CheckWithin(optical.supply_volts, 0, 1e5);
  for (size_t lane = 0; lane < optical.tx_power_watts.size(); ++lane) {
    CheckWithin(optical.tx_power_watts[lane], 0, 1e4);
    CheckWithin(optical.rx_power_watts[lane], 0, 1e4);
  }
  const std::vector<HccnPort> ports = ParseHccnPorts(text);
  FUZZ_EXPECT(ports.size() <= kMaxHccnPorts);
  for (size_t i = 0; i < ports.size(); ++i) {
    FUZZ_EXPECT(ports[i].die >= 0 && ports[i].die <= 255 && ports[i].port >= 0 && ports[i].port <= 255);
    FUZZ_EXPECT(std::count(ports.begin(), ports.end(), ports[i]) == 1);
  }
}

}  // namespace profd
