# Precompiled headers: a quarter off the time of a build. Of other people's headers only, so that no edit of
# ours rebuilds the tree. Code continues to include what it uses: presets without PROFD_PCH have none.
option(PROFD_PCH "Precompiled headers: a quarter off the time of a build" OFF)

set(PROFD_PCH_HEADERS <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional>
  <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)

if(PROFD_PCH)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch/empty.cc CONTENT "int main() { return 0; }\n")
  # So that ccache sees what came out of the header.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  # g++ 12 forgets which text of a precompiled header is the system's, and these warnings are wrong about
  # std::string there (GCC PR 105651 and its like). Presets without keep them.
  target_compile_options(profd_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:
    -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
  add_library(profd_pch_library OBJECT ${CMAKE_BINARY_DIR}/pch/empty.cc)
  target_link_libraries(profd_pch_library PRIVATE profd_flags)
  target_precompile_headers(profd_pch_library PRIVATE ${PROFD_PCH_HEADERS})
  # Tests are executables: -fPIE, which a precompiled header must agree with.
  add_executable(profd_pch_test EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/pch/empty.cc)
  target_link_libraries(profd_pch_test PRIVATE GTest::gmock profd_flags profd_test_flags)
  target_precompile_headers(profd_pch_test PRIVATE ${PROFD_PCH_HEADERS} <sstream> <gmock/gmock.h>)
endif()

# profd_precompile(target shared [header ...]): uses `shared`'s header, or one of its own when there are more.
function(profd_precompile target shared)
  if(NOT PROFD_PCH)
    return()
  elseif(ARGN)
    target_precompile_headers(${target} PRIVATE ${PROFD_PCH_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${shared})
  endif()
endfunction()
