// Variables by which launchers give a process its device. The daemon reads them of a process's environment, libprofd
// of its own. In order: the first that is set to a number counts.
#pragma once

#include <array>

namespace profd::attach {

// Lists of the devices that the process sees, in its numbering: "2,3,0", "4-7".
inline constexpr std::array kVisibleDevicesVariables = {"ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"};
inline constexpr std::array kDeviceVariables = {"ASCEND_DEVICE_ID", "DEVICE_ID"};
inline constexpr std::array kLocalRankVariables = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};

}  // namespace profd::attach
