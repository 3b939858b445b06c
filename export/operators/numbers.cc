#include "export/operators/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "export/operators/host_data.h"

namespace profd::exporting::operators {
namespace {

struct Numbered {
  uint32_t number;
  std::string_view name;
};

constexpr Numbered kCoreTypes[] = {
    {0, "AI_CORE"}, {1, "AI_CPU"}, {2, "AI_VECTOR_CORE"}, {3, "WRITE_BACK"}, {4, "MIX_AIC"}, {5, "MIX_AIV"},
    {6, "FFTS_PLUS"}, {7, "DSA_SQE"}, {8, "DVPP"}, {9, "COMMUNICATION"}, {10, "FUSION"}, {11, "INVALID"},
    {256, kCommunicationOnCpu},
};

constexpr Numbered kDataTypes[] = {
    {0, "FLOAT"}, {1, "FLOAT16"}, {2, "INT8"}, {3, "INT32"}, {4, "UINT8"}, {6, "INT16"}, {7, "UINT16"},
    {8, "UINT32"}, {9, "INT64"}, {10, "UINT64"}, {11, "DOUBLE"}, {12, "BOOL"}, {13, "STRING"},
    {14, "DUAL_SUB_INT8"}, {15, "DUAL_SUB_UINT8"}, {16, "COMPLEX64"}, {17, "COMPLEX128"}, {18, "QINT8"},
    {19, "QINT16"}, {20, "QINT32"}, {21, "QUINT8"}, {22, "QUINT16"}, {23, "RESOURCE"}, {24, "STRING_REF"},
    {25, "DUAL"}, {26, "DT_VARIANT"}, {27, "DT_BF16"}, {28, "DT_UNDEFINED"}, {29, "DT_INT4"}, {30, "DT_UINT1"},
    {31, "DT_INT2"}, {32, "DT_UINT2"}, {33, "DT_COMPLEX32"}, {34, "DT_HIFLOAT8"}, {35, "DT_FLOAT8_E5M2"},
    {36, "DT_FLOAT8_E4M3FN"}, {37, "DT_FLOAT8_E8M0"}, {38, "DT_FLOAT6_E3M2"}, {39, "DT_FLOAT6_E2M3"},
    {40, "DT_FLOAT4_E2M1"}, {41, "DT_FLOAT4_E1M2"}, {42, "DT_MAX"}, {229, "NUMBER_TYPE_BEGIN_"}, {230, "BOOL_"},
    {231, "INT_"}, {232, "INT8_"}, {233, "INT16_"}, {234, "INT32_"}, {235, "INT64_"}, {236, "UINT_"},
    {237, "UINT8_"}, {238, "UINT16_"}, {239, "UINT32_"}, {240, "UINT64_"}, {241, "FLOAT_"}, {242, "FLOAT16_"},
    {243, "FLOAT32_"}, {244, "FLOAT64_"}, {245, "COMPLEX_"}, {246, "NUMBER_TYPE_END_"}, {0xFFFFFFFF, "UNDEFINED"},
};

constexpr Numbered kFormats[] = {
    {0, "NCHW"}, {1, "NHWC"}, {2, "ND"}, {3, "NC1HWC0"}, {4, "FRACTAL_Z"}, {5, "NC1C0HWPAD"}, {6, "NHWC1C0"},
    {7, "FSR_NCHW"}, {8, "FRACTAL_DECONV"}, {9, "C1HWNC0"}, {10, "FRACTAL_DECONV_TRANSPOSE"},
    {11, "FRACTAL_DECONV_SP_STRIDE_TRANS"}, {12, "NC1HWC0_C04"}, {13, "FRACTAL_Z_C04"}, {14, "CHWN"},
    {15, "FRACTAL_DECONV_SP_STRIDE8_TRANS"}, {16, "HWCN"}, {17, "NC1KHKWHWC0"}, {18, "BN_WEIGHT"},
    {19, "FILTER_HWCK"}, {20, "HASHTABLE_LOOKUP_LOOKUPS"}, {21, "HASHTABLE_LOOKUP_KEYS"},
    {22, "HASHTABLE_LOOKUP_VALUE"}, {23, "HASHTABLE_LOOKUP_OUTPUT"}, {24, "HASHTABLE_LOOKUP_HITS"},
    {25, "C1HWNCoC0"}, {26, "MD"}, {27, "NDHWC"}, {28, "FRACTAL_ZZ"}, {29, "FRACTAL_NZ"}, {30, "NCDHW"},
    {31, "DHWCN"}, {32, "NDC1HWC0"}, {33, "FRACTAL_Z_3D"}, {34, "CN"}, {35, "NC"}, {36, "DHWNC"},
    {37, "FRACTAL_Z_3D_TRANSPOSE"}, {38, "FRACTAL_ZN_LSTM"}, {39, "FRACTAL_Z_G"}, {40, "RESERVED"}, {41, "ALL"},
    {42, "NULL"}, {43, "ND_RNN_BIAS"}, {44, "FRACTAL_ZN_RNN"}, {45, "END"}, {47, "NCL"}, {48, "FRACTAL_Z_WINO"},
    {49, "C1HWC0"}, {50, "FRACTAL_NZ_C0_16"}, {51, "FRACTAL_NZ_C0_32"}, {52, "FRACTAL_NZ_C0_2"},
    {53, "FRACTAL_NZ_C0_4"}, {54, "FRACTAL_NZ_C0_8"}, {55, "END"}, {200, "UNKNOWN_"}, {201, "DEFAULT_"},
    {202, "NC1KHKWHWC0_"}, {203, "ND_"}, {204, "NCHW_"}, {205, "NHWC_"}, {206, "HWCN_"}, {207, "NC1HWC0_"},
    {208, "FRAC_Z_"}, {209, "C1HWNCOC0_"}, {210, "FRAC_NZ_"}, {211, "NC1HWC0_C04_"}, {212, "FRACTAL_Z_C04_"},
    {213, "NDHWC_"}, {214, "FRACTAL_ZN_LSTM_"}, {215, "FRACTAL_ZN_RNN_"}, {216, "ND_RNN_BIAS_"},
    {217, "NDC1HWC0_"}, {218, "NCDHW_"}, {219, "FRACTAL_Z_3D_"}, {220, "DHWNC_"}, {221, "DHWCN_"}, {255, "MAX"},
    {0xFFFFFFFF, "UNDEFINED"},
};

constexpr Numbered kRuntimeTypes[] = {
    {0, "KERNEL_AICORE"}, {1, "KERNEL_AICPU"}, {2, "EVENT_RECORD"}, {3, "EVENT_WAIT"}, {4, "KERNEL_FUSION"},
    {5, "MEMCPY_ASYNC"}, {6, "MAINTENANCE"}, {7, "CREATE_STREAM"}, {8, "DATA_DUMP"}, {9, "REMOTE_EVENT_WAIT"},
    {11, "CREATE_L2_ADDR"}, {12, "MODEL_MAINTAINCE"}, {13, "MODEL_EXECUTE"}, {14, "NOTIFY_WAIT"},
    {15, "NOTIFY_RECORD"}, {16, "RDMA_SEND"}, {18, "STREAM_SWITCH"}, {19, "STREAM_ACTIVE"}, {20, "LABEL_SET"},
    {21, "LABEL_SWITCH"}, {22, "LABEL_GOTO"}, {23, "PROFILER_TRACE"}, {24, "EVENT_RESET"}, {25, "RDMA_DB_SEND"},
    {26, "PROFILER_TRACE_EX"}, {27, "PROFILER_DYNAMIC_ENABLE"}, {28, "PROFILER_DYNAMIC_DISABLE"},
    {30, "CCU_LAUNCH"}, {32, "MEMSET_ASYNC"}, {50, "STARS_COMMON"}, {52, "FFTS_PLUS"}, {53, "CMO_TASK"},
    {54, "BARRIER"}, {55, "WRITE_VALUE"}, {56, "MULTIPLE_TASK"}, {64, "PROFILING_ENABLE"},
    {65, "PROFILING_DISABLE"}, {66, "KERNEL_AIVEC"}, {67, "MODEL_END_GRAPH"}, {68, "MODEL_TO_AICPU"},
    {69, "ACTIVE_AICPU_STREAM"}, {70, "DATADUMP_LOADINFO"}, {71, "STREAM_SWITCH_N"}, {72, "HOSTFUNC_CALLBACK"},
    {73, "ONLINE_PROF_ENABLE"}, {74, "ONLINE_PROF_DISABLE"}, {75, "STREAM_LABEL_SWITCH_BY_INDEX"},
    {77, "STREAM_LABEL_GOTO"}, {78, "DEBUG_REGISTER"}, {79, "DEBUG_UNREGISTER"}, {81, "MODEL_EXIT_GRAPH"},
    {82, "ADC_PROF"}, {83, "DEVICE_RINGBUFFER_CONTROL"}, {84, "DEBUG_REGISTER_FOR_STREAM"},
    {85, "DEBUG_UNREGISTER_FOR_STREAM"}, {86, "TASK_TIMEOUT_SET"}, {87, "GET_DEVICE_MSG"},
    {88, "NPU_GET_FLOAT_STATUS"}, {89, "NPU_CLEAR_FLOAT_STATUS"}, {90, "reserve"}, {91, "OVERFLOW_SWTICH_SET"},
    {92, "REDUCE_ASYNC_V2"}, {93, "STREAM_TAG_SET"}, {94, "SET_STREAM_MODE"}, {95, "IPC_INT_NOTICE"},
    {96, "MODEL_LOAD"}, {97, "GET_STARS_VERSION"}, {98, "TASK_FLIP"}, {99, "SQ_LOCK_UNLOCK"},
    {100, "UPDATE_ADDRESS"}, {101, "MODEL_TASK_UPDATE"}, {102, "AICPU_INFO_LOAD"}, {103, "NOP"},
    {104, "COMMON_CMD"}, {105, "UB_DB_SEND"}, {106, "DIRECT_SEND"}, {107, "FUSION_KERNEL"},
    {108, "KERNEL_MIX_AIC"}, {109, "KERNEL_MIX_AIV"}, {110, "EVENT_RECORD"}, {111, "EVENT_WAIT"},
    {112, "EVENT_RESET"}, {113, "MEM_WRITE_VALUE"}, {114, "MEM_WAIT_VALUE"}, {126, "CAPTURE_RECORD"},
    {127, "CAPTURE_WAIT"}, {129, "IPC_EVENT_RECORD"}, {130, "IPC_EVENT_WAIT"},
};

constexpr Numbered kSqeTypes[] = {
    {0, "AI_CORE"}, {1, "AI_CPU"}, {2, "AIV_SQE"}, {3, "PLACE_HOLDER_SQE"}, {4, "EVENT_RECORD_SQE"},
    {5, "EVENT_WAIT_SQE"}, {6, "NOTIFY_RECORD_SQE"}, {7, "NOTIFY_WAIT_SQE"}, {8, "WRITE_VALUE_SQE"}, {9, "VQ6_SQE"},
    {10, "TOF_SQE"}, {11, "SDMA_SQE"}, {12, "VPC"}, {13, "JPEGE"}, {14, "JPEGD"}, {15, "DSA_SQE"},
    {16, "ROCCE_SQE"}, {17, "PCIE_DMA_SQE"}, {18, "HOST_CPU_SQE"}, {19, "CDQM_SQE"}, {20, "C_CORE_SQE"},
    {kUnknownSqe, "UNKNOWN"},
};

constexpr Numbered kSqeTypesV6[] = {
    {0, "AI_CORE"}, {1, "AIV_SQE"}, {2, "FUSION"}, {3, "PLACE_HOLDER_SQE"}, {4, "AICPU_H"}, {5, "AICPU_D"},
    {6, "NOTIFY_RECORD_SQE"}, {7, "NOTIFY_WAIT_SQE"}, {8, "WRITE_VALUE_SQE"}, {9, "UBDMA"}, {10, "ASYNCDMA"},
    {11, "SDMA_SQE"}, {12, "VPC_SQE"}, {13, "JPEGE_SQE"}, {14, "JPEGD_SQE"}, {15, "CMO_SQE"}, {16, "CCU_SQE"},
    {20, "CONDITION_SQE"}, {21, "END_SQE"},
};

constexpr Numbered kAclClasses[] = {
    {1, "ACL_OP"}, {2, "ACL_MODEL"}, {3, "ACL_RTS"}, {4, "ACL_OTHERS"}, {5, "ACL_NN"}, {6, "ACL_ASCENDC"},
    {7, "HOST_HCCL"}, {9, "ACL_DVPP"}, {10, "ACL_GRAPH"}, {11, "ACL_ATB"},
};

constexpr Numbered kSubTaskTypes[] = {
    {0, "AIC"}, {1, "AIV"}, {3, "Notify Wait"}, {4, "Notify Record"}, {5, "Write Value"}, {6, "MIX_AIC"},
    {7, "MIX_AIV"}, {8, "SDMA"}, {9, "Data Context"}, {10, "Invalidate Data Context"},
    {11, "Writeback Data Context"}, {12, "AI_CPU"}, {13, "Load Context"}, {15, "DSA"},
};

std::string_view Find(std::span<const Numbered> table, uint32_t number) {
  const auto found = std::ranges::find(table, number, &Numbered::number);
  return found == table.end() ? std::string_view() : found->name;
}

std::string NameOrNumber(std::span<const Numbered> table, uint32_t number) {
  const std::string_view name = Find(table, number);
  return name.empty() ? fmt::to_string(number) : std::string(name);
}

}  // namespace

std::string_view CoreTypeName(uint32_t type) { return Find(kCoreTypes, type); }

bool IsOperator(std::string_view core_type, std::string_view name) {
  if (core_type == "COMMUNICATION") return name.ends_with("AivKernel");
  return core_type != "WRITE_BACK" && core_type != "INVALID" && core_type != kCommunicationOnCpu;
}

std::string DataTypeName(uint32_t type) { return NameOrNumber(kDataTypes, type); }

std::string FormatName(uint32_t format) {
  if (format == 0xFFFFFFFF) return NameOrNumber(kFormats, format);
  const uint32_t sub = format >> 8 & 0xFFFF;
  std::string name = NameOrNumber(kFormats, format & 0xFF);
  if (sub != 0) name += fmt::format(":{}", sub);
  return name;
}

std::string_view AclClassName(uint32_t type) { return Find(kAclClasses, type >> 16); }

std::string_view RuntimeTypeName(const HostData& data, uint32_t type) {
  const std::string& name = data.TypeName(kRuntimeLevel, type);
  const bool unknown = !name.empty() && name[0] >= '0' && name[0] <= '9';
  if (!unknown) return name;
  const std::string_view usual = Find(kRuntimeTypes, type);
  return usual.empty() ? std::string_view(name) : usual;
}

int CoreOfKernel(std::string_view runtime_type) {
  if (runtime_type == "KERNEL_AICORE") return 0;
  if (runtime_type == "KERNEL_AICPU") return 1;
  if (runtime_type == "KERNEL_AIVEC" || runtime_type == "KERNEL_SIMT") return 2;
  if (runtime_type == "KERNEL_MIX_AIC") return 4;
  if (runtime_type == "KERNEL_MIX_AIV") return 5;
  return -1;
}

std::string SqeTypeName(uint32_t type) {
  const bool v6 = type >= kSqeV6 && type != kUnknownSqe;
  return v6 ? NameOrNumber(kSqeTypesV6, type - kSqeV6) : NameOrNumber(kSqeTypes, type);
}

std::string SubTaskTypeName(uint32_t type) { return NameOrNumber(kSubTaskTypes, type); }

}  // namespace profd::exporting::operators
