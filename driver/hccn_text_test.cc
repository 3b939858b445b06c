#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "driver/hccn_tool.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HccnText, Link) {
  EXPECT_EQ(ParseHccnLink("link status: UP\n"), true);
  EXPECT_EQ(ParseHccnLink("link status: DOWN\n"), false);
  EXPECT_EQ(ParseHccnLink("noise\r\n  Link Status :  up \r\n"), true);
  for (const char* text : {"", "link status:", "link status: Unknown!", "link status: UPPER", "UP",
                           "link statuses: UP", ": UP", "link status"}) {
    EXPECT_EQ(ParseHccnLink(text), std::nullopt) << text;
  }
}

TEST(HccnText, SpeedIsInBytes) {
  EXPECT_EQ(ParseHccnSpeed("Speed: 200000 Mb/s\n"), 25e9);
  EXPECT_EQ(ParseHccnSpeed("Speed: 400 Gb/s\n"), 50e9);
  EXPECT_EQ(ParseHccnSpeed("Speed: 0 Mb/s\n"), 0);
  for (const char* text : {"Unknown!\n", "Speed: Unknown!\n", "Speed: -1 Mb/s\n", "Speed: 200000\n",
                           "Speed: nan Mb/s\n", "Speed: inf Mb/s\n", "Speed: 1e300 Mb/s\n"}) {
    EXPECT_EQ(ParseHccnSpeed(text), std::nullopt) << text;
  }
}

TEST(HccnText, LinkHistory) {
  EXPECT_EQ(ParseHccnLinkUps("[device 0]current time        : Tue Jun  4 10:08:24 2024\n"
                             "[device 0]link up count       : 3\n"
                             "[device 0]link change records :\n"
                             "[device 0]    Tue Jun  4 10:07:29 2024    LINK UP\n"),
            3u);
  EXPECT_EQ(ParseHccnLinkUps("link up count: 18446744073709551615\n"), UINT64_MAX);
  for (const char* text : {"link up count : -3\n", "link up count : 3 times\n", "[device 0\n",
                           "link up count : 18446744073709551616\n"}) {
    EXPECT_EQ(ParseHccnLinkUps(text), std::nullopt) << text;
  }
}

TEST(HccnText, OpticsOfA2) {
  const OpticalValues read = ParseHccnOptical(
      "optical info:\npresent              : present\n"
      "temperature          : 47 C\nVcc                  : 3301.40 mV\n"
      "Tx Power0            : 0.9 mW\nTx Power3            : 1.25 mW\n"
      "Rx Power0            : 0.8 mW\nRx Power1            : 0.0 mW\nRx Power2 : NA\n");
  EXPECT_EQ(read.present, true);
  EXPECT_EQ(read.temperature_celsius, 47);
  EXPECT_DOUBLE_EQ(read.supply_volts.value_or(0), 3.3014);
  EXPECT_DOUBLE_EQ(read.tx_power_watts[0].value_or(0), 0.0009);
  EXPECT_EQ(read.tx_power_watts[1], std::nullopt);
  EXPECT_DOUBLE_EQ(read.tx_power_watts[3].value_or(0), 0.00125);
  EXPECT_DOUBLE_EQ(read.rx_power_watts[0].value_or(0), 0.0008);
  EXPECT_EQ(read.rx_power_watts[1], 0.0);
  EXPECT_EQ(read.rx_power_watts[2], std::nullopt);
}

TEST(HccnText, OpticsOfA5AreInDecibels) {
  const OpticalValues read = ParseHccnOptical(
      "present : present\nTx Power7 : 0.00 dBm\nRx Power0 : -10.00 dBm\nRx Power1 : -40 dBm\n"
      "Rx Power2 : -inf dBm\nRx Power3 : 99999 dBm\nRx Power4 : 61 dBm\n");
  EXPECT_DOUBLE_EQ(read.tx_power_watts[7].value_or(0), 0.001);
  EXPECT_DOUBLE_EQ(read.rx_power_watts[0].value_or(0), 0.0001);
  EXPECT_DOUBLE_EQ(read.rx_power_watts[1].value_or(0), 1e-7);
  for (size_t lane : {2u, 3u, 4u}) EXPECT_EQ(read.rx_power_watts[lane], std::nullopt) << lane;
}

TEST(HccnText, OpticsThatMakeNoSenseAreAbsent) {
  EXPECT_EQ(ParseHccnOptical("present : not present\n").present, false);
  const OpticalValues read = ParseHccnOptical(
      "present : maybe\ntemperature : 4000 C\nVcc : -3 mV\nVcc : 3 kV\nTx Power8 : 1 mW\n"
      "Tx Power : 1 mW\nTx Power12 : 1 mW\nTx Power0 : -1 mW\nRx Power0 : 1\nRx Power1 : 1 W\n"
      "temperature : 47 F\n");
  EXPECT_EQ(read.present, std::nullopt);
  EXPECT_EQ(read.temperature_celsius, std::nullopt);
  EXPECT_EQ(read.supply_volts, std::nullopt);
  EXPECT_THAT(read.tx_power_watts, ::testing::Each(std::nullopt));
  EXPECT_THAT(read.rx_power_watts, ::testing::Each(std::nullopt));
}

TEST(HccnText, PortsOfA5) {
  EXPECT_THAT(ParseHccnPorts("+--------+--------+\n"
                             "| UdieID | PortID | Speed | PortType | Link Status | Media Type |\n"
                             "| 0      | 4      | 400G  | UB       | UP          | Optical    |\n"
                             "| 0      | 4      | 400G  | UB       | UP          | Optical    |\n"
                             "| 1      | 7      | 400G  | UB       | DOWN        | Optical    |\n"
                             "| -1     | 7      |\n| 1 | 256 |\n| 2 |\n||\n|\n"),
              ElementsAre(HccnPort{0, 4}, HccnPort{1, 7}));
  EXPECT_THAT(ParseHccnPorts("0 | 4 | 400G\n"), IsEmpty());
  std::string many;
  for (int i = 0; i < 200; ++i) many += "| 0 | " + std::to_string(i) + " |\n";
  EXPECT_EQ(ParseHccnPorts(many).size(), kMaxHccnPorts);
}

}  // namespace
}  // namespace profd
