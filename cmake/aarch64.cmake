# Cross build for Kunpeng nodes: Debian's compiler, arm64 headers and libraries from a sysroot that
# scripts/lib/arm64-sysroot fills, generators (protoc) of this machine, tests under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

if(DEFINED ENV{PROFD_AARCH64_SYSROOT})
  set(_sysroot $ENV{PROFD_AARCH64_SYSROOT})
else()
  get_filename_component(_sysroot ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot ABSOLUTE)
endif()
if(NOT EXISTS ${_sysroot}/.complete)
  message(FATAL_ERROR "No arm64 sysroot at ${_sysroot}; run scripts/lib/arm64-sysroot ${_sysroot}")
endif()
set(CMAKE_SYSROOT ${_sysroot})

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH ${_sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# pkg-config has no notion of a root of its own.
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${_sysroot})
set(ENV{PKG_CONFIG_LIBDIR}
  ${_sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig:${_sysroot}/usr/share/pkgconfig)

# -L: where the emulated dynamic loader and its libraries are.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${_sysroot})
