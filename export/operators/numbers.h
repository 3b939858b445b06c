// Numbers of operator-level records as names (operator-data a.3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace profd::exporting::operators {

class HostData;

inline constexpr char kNotKnown[] = "N/A";
// Core type of what an AI CPU does for a collective.
inline constexpr char kCommunicationOnCpu[] = "HCCL_AI_CPU";
inline constexpr uint32_t kFftsPlusCore = 6;
inline constexpr uint32_t kCommunicationCore = 9;

// Core types of node records: "AI_CORE", ...; empty for others.
std::string_view CoreTypeName(uint32_t type);
// Whether a task of this core type is an execution of an operator. Those of a collective are only as its AIV kernel.
bool IsOperator(std::string_view core_type, std::string_view name);
// Unknown: the number.
std::string DataTypeName(uint32_t type);
std::string FormatName(uint32_t format);  // "ND", "NCHW:3" with a sub-format

// Class of a call of AscendCL, by its type: "ACL_NN", ...; empty for others.
std::string_view AclClassName(uint32_t type);

// Of a task, by the dump's own dictionary or the numbers of today's runtime.
std::string_view RuntimeTypeName(const HostData& data, uint32_t type);  // of `data`'s life
// Core type of a kernel by the name of its runtime type; -1: no kernel.
int CoreOfKernel(std::string_view runtime_type);

// Of device records: SQE type of a task, sub-task type of a context. Unknown: the number.
std::string SqeTypeName(uint32_t type);
std::string SubTaskTypeName(uint32_t type);

}  // namespace profd::exporting::operators
