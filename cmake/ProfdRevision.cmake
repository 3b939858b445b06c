# PROFD_REVISION: the commit that is built, for profd_build_info. From the environment (scripts/package builds a copy of
# the tree), else of the repository whose top this is ("-dirty" behind it: with changes when it was configured), else
# empty, as from a tarball. A new commit configures anew.
set(PROFD_REVISION "$ENV{PROFD_REVISION}")
if(PROFD_REVISION STREQUAL "" AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  # As root in another user's checkout git would refuse.
  set(_profd_git git -c safe.directory=${PROJECT_SOURCE_DIR})
  execute_process(COMMAND ${_profd_git} describe --always --dirty --exclude=* --abbrev=12 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE PROFD_REVISION ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${_profd_git} rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE _profd_head_log ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  cmake_path(ABSOLUTE_PATH _profd_head_log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT PROFD_REVISION STREQUAL "" AND EXISTS ${_profd_head_log})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_profd_head_log})
  endif()
endif()
