// Names of numbers in communication records (operator-data a.3).
#pragma once

#include <cstdint>
#include <string>

namespace profd::exporting::operators {

// "FP16", "HCCS", "SDMA", ...; the number where it has no name.
std::string CommunicationDataTypeName(uint32_t type);
std::string LinkTypeName(uint32_t type);
std::string TransportTypeName(uint32_t type);
// Of a copy: "host to device", ...; "other" where it has no name.
std::string CopyDirectionName(uint32_t direction);

}  // namespace profd::exporting::operators
