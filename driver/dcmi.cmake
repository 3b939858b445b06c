# The DCMI half of the driver room: libdcmi.so.
profd_library(profd_driver_dcmi
  SOURCES dcmi_errors.cc dcmi_identity.cc dcmi_library.cc dcmi_queries.cc dcmi_service.cc
  DEPS profd_base $<TARGET_NAME_IF_EXISTS:profd_driver> fmt::fmt)
profd_test(dcmi_test SOURCES dcmi_service_test.cc DEPS profd_driver_dcmi)
