# Builds for other distributions (scripts/portable): PROFD_PORTABLE is a folder that scripts/lib/old-glibc has filled
# with an older glibc to link with. Debian's static libraries become part of the programs, under the names that
# ProfdPackages.cmake gives to the shared ones; libsystemd alone stays the node's own.
set(PROFD_PORTABLE "" CACHE PATH "Folder with an older glibc: a build for other distributions")
if(NOT PROFD_PORTABLE)
  return()
endif()
find_package(PkgConfig REQUIRED)
set(OPENSSL_USE_STATIC_LIBS ON)
set(Protobuf_USE_STATIC_LIBS ON)
set(_profd_static_dir ${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})

# profd_static(target package): the package's static libraries, and what they need, in pkg-config's order.
function(profd_static target package)
  pkg_check_modules(_pc_${package} REQUIRED ${package})
  set(libraries)
  foreach(library ${_pc_${package}_STATIC_LIBRARIES})
    if(EXISTS ${_profd_static_dir}/lib${library}.a AND NOT library MATCHES "^(pthread|dl|rt|m|c)$")
      list(APPEND libraries ${_profd_static_dir}/lib${library}.a)
    endif()
  endforeach()
  if(NOT libraries)
    message(FATAL_ERROR "${package} has no static libraries in ${_profd_static_dir}")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
endfunction()

# profd_made_static(target name DEFINITIONS d ... [DEPS x ...]): a library that Debian has as a shared one only, made
# static from its headers. The definitions are the shared one's: everything compiles as in other builds.
function(profd_made_static target name)
  cmake_parse_arguments(ARG "" "" "DEFINITIONS;DEPS" ${ARGN})
  add_library(profd_portable_${name} STATIC EXCLUDE_FROM_ALL packaging/portable/${name}.cc)
  target_compile_definitions(profd_portable_${name} PRIVATE ${ARG_DEFINITIONS})
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES INTERFACE_COMPILE_DEFINITIONS "${ARG_DEFINITIONS}"
    INTERFACE_LINK_LIBRARIES "profd_portable_${name};${ARG_DEPS}")
endfunction()

profd_made_static(fmt::fmt fmt DEFINITIONS FMT_SHARED)
profd_made_static(spdlog::spdlog spdlog DEFINITIONS SPDLOG_SHARED_LIB SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL DEPS fmt::fmt)
profd_made_static(PkgConfig::TOMLPP tomlplusplus DEFINITIONS TOML_HEADER_ONLY=0 TOML_SHARED_LIB=1)
# Not made of headers; what Debian's package leaves out is beside the older glibc.
set(_profd_prometheus check_names counter detail/builder detail/ckms_quantiles detail/time_window_quantiles detail/utils
  family gauge histogram registry serializer summary text_serializer)
list(TRANSFORM _profd_prometheus REPLACE "(.+)" "${PROFD_PORTABLE}/prometheus-cpp/\\1.cc")
add_library(profd_portable_prometheus STATIC EXCLUDE_FROM_ALL ${_profd_prometheus})
target_include_directories(profd_portable_prometheus PRIVATE ${PROFD_PORTABLE}/prometheus-cpp)
add_library(PkgConfig::PROMETHEUS ALIAS profd_portable_prometheus)
# The same, with the temporary files of libc and without checksums of pictures, which no sheet has.
set(_profd_xlsxwriter src/app src/chart src/chartsheet src/comment src/content_types src/core src/custom src/drawing src/format
  src/hash_table src/metadata src/packager src/relationships src/shared_strings src/styles src/table src/theme src/utility
  src/vml src/workbook src/worksheet src/xmlwriter third_party/minizip/ioapi third_party/minizip/zip)
list(TRANSFORM _profd_xlsxwriter REPLACE "(.+)" "${PROFD_PORTABLE}/xlsxwriter/\\1.c")
add_library(profd_portable_xlsxwriter STATIC EXCLUDE_FROM_ALL ${_profd_xlsxwriter})
target_include_directories(profd_portable_xlsxwriter PRIVATE ${PROFD_PORTABLE}/xlsxwriter/include)
target_compile_definitions(profd_portable_xlsxwriter PRIVATE USE_STANDARD_TMPFILE USE_NO_MD5 NOCRYPT NOUNCRYPT)
target_compile_options(profd_portable_xlsxwriter PRIVATE -w)
add_library(PkgConfig::XLSXWRITER ALIAS profd_portable_xlsxwriter)
profd_static(PkgConfig::GRPCPP grpc++)
profd_static(PkgConfig::SQLITE sqlite3)
profd_static(PkgConfig::ZSTD libzstd)
profd_static(PkgConfig::ZLIB zlib)
target_link_libraries(profd_portable_xlsxwriter INTERFACE PkgConfig::ZLIB)
profd_static(PkgConfig::YAMLCPP yaml-cpp)
profd_static(PkgConfig::SNAPPY snappy)
profd_static(PkgConfig::NCURSESW ncursesw)
# Linked by name elsewhere.
foreach(library crypt grpc++_reflection)
  add_library(${library} STATIC IMPORTED GLOBAL)
  set_target_properties(${library} PROPERTIES IMPORTED_LOCATION ${_profd_static_dir}/lib${library}.a)
endforeach()
target_link_libraries(grpc++_reflection INTERFACE PkgConfig::GRPCPP)

set(_profd_compat_source ${PROJECT_SOURCE_DIR}/packaging/portable/glibc_compat.c)
file(MD5 ${_profd_compat_source} _profd_compat)  # another source: another name, and everything is linked anew
set(_profd_compat ${CMAKE_BINARY_DIR}/glibc_compat-${_profd_compat}.o)
set(_profd_sysroot_flag)
if(CMAKE_SYSROOT)
  set(_profd_sysroot_flag --sysroot=${CMAKE_SYSROOT})
endif()
execute_process(
  COMMAND ${CMAKE_C_COMPILER} ${_profd_sysroot_flag} -O2 -g1 -fPIC -fno-builtin -fasynchronous-unwind-tables -Wall -Wextra
          -Werror -c ${_profd_compat_source} -o ${_profd_compat}
  COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_profd_compat_source})

# Their own copy of the compiler's libraries: the node's may be older. libsystemd asks more of glibc than we do.
add_link_options(-B${PROFD_PORTABLE} -L${PROFD_PORTABLE} -static-libstdc++ -static-libgcc
  -Wl,--allow-shlib-undefined ${_profd_compat}
  -Wl,--wrap=exp,--wrap=exp2,--wrap=log,--wrap=log2,--wrap=pow)
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -l:libatomic.a -lpthread -ldl -lrt -lm")
string(APPEND CMAKE_C_STANDARD_LIBRARIES " -lpthread -ldl -lrt -lm")
