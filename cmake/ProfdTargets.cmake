# Everything a module's CMakeLists.txt needs: one way to declare a library, a binary and a test, with the same
# warnings, sanitizers and hardening everywhere.

set(PROFD_SANITIZE "" CACHE STRING "Comma-separated -fsanitize list; empty for none")
set(PROFD_AUTO_INIT "" CACHE STRING "What variables of a function hold before they are set: pattern, zero or empty")
set(_profd_harden ON)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(_profd_harden OFF)  # -O0 would warn of it
endif()
option(PROFD_HARDEN "Fortified libc calls, guarded stack and branches, as shipped" ${_profd_harden})
option(PROFD_WERROR "A warning ends the build; off for what ships, whose flags and compilers are its builder's" ON)
option(PROFD_FUZZ "Fuzzers with libFuzzer (clang only)" OFF)

include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)

# For the many programs of the tests GNU ld takes seconds each. What ships is linked by it.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  check_linker_flag(CXX -fuse-ld=lld PROFD_HAS_LLD)
  if(PROFD_HAS_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

find_program(PROFD_CCACHE ccache)
if(PROFD_CCACHE)
  # What ccache must overlook to cache objects made with a precompiled header (its manual's words for it).
  set(_profd_launcher env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    # Clones in other directories find the same objects.
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${PROFD_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_profd_launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${_profd_launcher})
endif()

add_library(profd_flags INTERFACE)
target_include_directories(profd_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(profd_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion $<$<BOOL:${PROFD_WERROR}>:-Werror> -fstack-protector-strong
  # The table of metrics is checked at compile time, which takes more steps than clang allows by default.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety> $<$<CXX_COMPILER_ID:Clang>:-fconstexpr-steps=20000000>
  # g++ collects its garbage at every 128 MiB by default, which is a tenth of the time of a group of sources.
  # With 1 GB (the unit is kB) it takes 1.3 GB at most (2 GB with AddressSanitizer), where it took 1.0.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
if(PROFD_AUTO_INIT)
  check_cxx_compiler_flag(-ftrivial-auto-var-init=${PROFD_AUTO_INIT} PROFD_HAS_AUTO_INIT)
  if(PROFD_HAS_AUTO_INIT)
    # g++ 12 then takes the filling of an empty object in fmt for a use of what is not set; clang's warnings,
    # and g++'s in presets without, remain. So release has none: there these warnings look at everything.
    target_compile_options(profd_flags INTERFACE -ftrivial-auto-var-init=${PROFD_AUTO_INIT}
      $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
endif()
target_compile_definitions(profd_flags INTERFACE
  _FILE_OFFSET_BITS=64 $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
target_link_options(profd_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)

if(PROFD_SANITIZE)
  string(REPLACE "," ";" _profd_sanitizers "${PROFD_SANITIZE}")
  add_compile_options(-fsanitize=${PROFD_SANITIZE} -fno-omit-frame-pointer)
  if("undefined" IN_LIST _profd_sanitizers)
    add_compile_options(-fno-sanitize-recover=all)
  endif()
  if("thread" IN_LIST _profd_sanitizers)
    # Asio has a fence that TSan cannot see; its queues are also guarded by a mutex, which it can.
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
  # What tests run with; the same as scripts/test sets, for a ctest by hand. TSan knows only what it
  # instruments: Debian's gRPC, protobuf and prometheus-cpp are not.
  set(PROFD_SANITIZER_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
  add_link_options(-fsanitize=${PROFD_SANITIZE})
  if(PROFD_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(PROFD_HARDEN)
  # scripts/check-hardening looks for it in the binaries.
  target_compile_options(profd_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
    target_compile_options(profd_flags INTERFACE -fcf-protection=full)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
    target_compile_options(profd_flags INTERFACE -mbranch-protection=standard)
  endif()
endif()

# Last of a test's libraries. Its code runs once: to optimize it takes a third of the time that it compiles.
add_library(profd_test_flags INTERFACE)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(profd_test_flags INTERFACE -O0 -U_FORTIFY_SOURCE)
endif()

# Several sources as one: half the compiler's time, which goes into headers. A "|" in a list of SOURCES ends a
# group: those of a group are compiled as one, so none has a name of its own (unnamed namespace, static, macro,
# using) that another of the group has too. Where the compiler names two that do, rename one or move a source.
option(PROFD_UNITY "Compile the sources of a group together" OFF)

# profd_sources(variable source ... [| source ...] ...): sets the list without the bars.
function(profd_sources variable)
  set(sources)
  set(group)
  set(groups 0)
  foreach(item IN LISTS ARGN ITEMS "|")
    if(NOT item STREQUAL "|")
      list(APPEND group ${item})
      continue()
    endif()
    list(LENGTH group size)
    if(size GREATER 1)  # g++ warns of some code that is right in a source and would not be in a header
      set_source_files_properties(${group} PROPERTIES UNITY_GROUP g${groups})
    endif()
    list(APPEND sources ${group})
    set(group)
    math(EXPR groups "${groups} + 1")
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# profd_unite(target)
function(profd_unite target)
  if(PROFD_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()

# profd_library(name SOURCES a.cc ... | b.cc ... DEPS x ... [PCH h ... | NO_PCH] [NO_UNITY]): one static library per
# module or collector. PCH: headers of others that nearly all of its sources include; NO_PCH: it has flags of its
# own. NO_UNITY: who links it must not get one source's libraries with another.
function(profd_library name)
  cmake_parse_arguments(ARG "NO_PCH;NO_UNITY" "" "SOURCES;DEPS;PCH" ${ARGN})
  profd_sources(sources ${ARG_SOURCES})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
  if(NOT ARG_NO_UNITY)
    profd_unite(${name})
  endif()
  if(NOT ARG_NO_PCH)
    profd_precompile(${name} profd_pch_library ${ARG_PCH})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE profd_flags)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()

# profd_binary(name SOURCES main.cc DEPS x ...): an executable in build/<preset>/bin.
function(profd_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  profd_sources(sources ${ARG_SOURCES})
  add_executable(${name} ${sources})
  profd_unite(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} profd_flags)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# profd_for_tests(target ...): what only tests, benchmarks and the printers of documents need is not part of `all`;
# it is built with the target `tests`.
add_custom_target(tests)
function(profd_for_tests)
  set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(tests ${ARGN})
endfunction()

# profd_printed_test(name program argument file): the file in the repository is what the program prints.
function(profd_printed_test name program argument file)
  if(NOT CMAKE_CROSSCOMPILING)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D ARGUMENT=${argument}
      -D FILE=${PROJECT_SOURCE_DIR}/${file} -P ${PROJECT_SOURCE_DIR}/cmake/CheckPrinted.cmake)
    set_tests_properties(${name} PROPERTIES LABELS e2e)
  endif()
endfunction()

# profd_test(name SOURCES x_test.cc ... DEPS x ...): a GoogleTest executable known to ctest as `name`.
function(profd_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  profd_sources(sources ${ARG_SOURCES})
  add_executable(${name} ${sources})
  profd_unite(${name})
  profd_precompile(${name} profd_pch_test)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main profd_flags profd_test_flags)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  profd_for_tests(${name})
  set_tests_properties(${name} PROPERTIES
    LABELS unit ENVIRONMENT "${PROFD_SANITIZER_ENVIRONMENT}")
endfunction()
