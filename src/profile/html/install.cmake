# SPDX-License-Identifier: Apache-2.0
# Fills TO/node_modules with what FROM/package-lock.json names, unless it already holds that.
file(SHA256 ${FROM}/package-lock.json wanted)
set(present "")
if(EXISTS ${TO}/installed AND EXISTS ${TO}/node_modules/.package-lock.json)
  file(READ ${TO}/installed present)
endif()
if(NOT present STREQUAL wanted)
  file(REMOVE ${TO}/installed)
  file(COPY ${FROM}/package.json ${FROM}/package-lock.json ${FROM}/.npmrc DESTINATION ${TO})
  execute_process(
    COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
    WORKING_DIRECTORY ${TO} OUTPUT_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "npm ci failed in ${TO}; the flame graph page needs its libraries once")
  endif()
endif()
file(WRITE ${TO}/installed "${wanted}")
