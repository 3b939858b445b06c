// libdcmi.so: flow control, error correction, lanes (dcmi-and-metrics 1.3; numbers are its rows).
#include "sim/dcmi_library.h"

using profd::sim::Ask;
using profd::sim::DcmiView;
namespace abi = profd::abi;

// 23
PROFD_SIM_ASK(dcmi_get_hccs_avail_credit_info, abi::DcmiHccsCreditInfo, &DcmiView::HccsCredits)

// 29 to 31. Only port 0 exists.
PROFD_SIM_ASK(dcmi_get_netdev_tc_stat_info, abi::DcmiTcStatData, &DcmiView::TrafficClasses)
PROFD_SIM_ASK(dcmi_get_pfc_duration_info, abi::DcmiPfcDurationInfo, &DcmiView::PfcDuration)
PROFD_SIM_EXPORT int dcmi_get_extra_statistics_info(int card, int device, int port,
                                                    abi::DcmiExtraStatistics* out) {
  if (port != 0) return abi::kDcmiInvalidParameter;
  return Ask(card, device, out, &DcmiView::ExtraStatistics);
}

// 32
PROFD_SIM_EXPORT int dcmi_get_serdes_quality_info(int card, int device, unsigned macro,
                                                  abi::DcmiSerdesQuality* out) {
  return Ask(card, device, out, &DcmiView::Serdes, macro);
}
