# Fails unless FILE is exactly what PROGRAM prints when called with ARGUMENT.
execute_process(COMMAND ${PROGRAM} ${ARGUMENT} OUTPUT_VARIABLE printed RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ${ARGUMENT}: ${code}")
endif()
file(READ ${FILE} kept)
if(NOT printed STREQUAL kept)
  message(FATAL_ERROR "${FILE} is out of date; write it with: ${PROGRAM} ${ARGUMENT} > ${FILE}")
endif()
