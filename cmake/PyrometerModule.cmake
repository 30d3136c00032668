# SPDX-License-Identifier: Apache-2.0
#
# pyrometer_module(NAME SOURCES a.cc... [ALONE a.cc...] [DEPS module...] [LIBS third-party...] [PRIVATE_LIBS ...])
#   One static library `pyrometer_NAME` for src/NAME. DEPS are the modules it may include;
#   scripts/check-layers compares them with its #include lines. LIBS appear in its headers,
#   PRIVATE_LIBS do not. ALONE are those of SOURCES that no other may be compiled together with.
#
# pyrometer_test(NAME SOURCES a_test.cc... [ALONE a_test.cc...] [DEPS module...] [LIBS ...] [LABELS unit])
#   One GoogleTest program; every TEST in it becomes a CTest test with these labels. ALONE are those of
#   SOURCES that have a name in their unnamed namespace that another has, too.

add_library(pyrometer_flags INTERFACE)
# -Wno-maybe-uninitialized: optimizing, g++ 12 suspects what absl's tables and std::optional hold.
target_compile_options(pyrometer_flags INTERFACE
  -Wno-maybe-uninitialized
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wcast-align
  $<$<BOOL:${PYROMETER_WERROR}>:-Werror>)
if(PYROMETER_SANITIZE)
  target_compile_options(pyrometer_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(pyrometer_flags INTERFACE -fsanitize=address,undefined)
endif()
if(PYROMETER_FUZZ)
  target_compile_options(pyrometer_flags INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(pyrometer_flags INTERFACE -fsanitize=address,undefined)
endif()

# The contract: include/pyrometer, for everybody.
add_library(pyrometer_contract INTERFACE)
target_include_directories(pyrometer_contract INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(pyrometer_contract INTERFACE fmt)

# A third of a build from nothing is reading the same few headers 250 times (measured 2026-11-22).
# A compiler cache saves more, and cannot look into a precompiled header.
if(PYROMETER_PRECOMPILE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
  # Some third parties ask for these; the header serves only those compiled as it was itself.
  target_compile_options(pyrometer_flags INTERFACE -pthread)
  target_compile_definitions(pyrometer_flags INTERFACE FMT_SHARED)
  add_library(pyrometer_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(pyrometer_precompiled PRIVATE pyrometer_contract pyrometer_flags)
  target_precompile_headers(pyrometer_precompiled PRIVATE
    <absl/container/flat_hash_map.h> <absl/synchronization/mutex.h> <fmt/format.h>
    <tl/expected.hpp> <algorithm> <array> <chrono> <filesystem> <functional> <map> <memory> <mutex>
    <optional> <span> <string> <string_view> <thread> <utility> <variant> <vector>)
endif()

# join_sources(OUT SIZE SOURCES a.cc... [ALONE a.cc...])
#   Sets OUT to sources that include SIZE of SOURCES each, and to those of ALONE and generated ones as they are. By
#   paths below the project, not by whole ones as CMake's own UNITY_BUILD: __FILE__ is in every assertion of a test,
#   and a compiler cache that clones share finds nothing in it that is another clone's.
function(join_sources out size)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "SOURCES;ALONE")
  file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(joined ${ARG_SOURCES})
  list(FILTER joined INCLUDE REGEX "^/")
  list(APPEND joined ${ARG_ALONE})
  if(joined)
    list(REMOVE_ITEM ARG_SOURCES ${joined})
  endif()
  set(number 0)
  while(ARG_SOURCES)
    list(SUBLIST ARG_SOURCES 0 ${size} batch)
    list(REMOVE_ITEM ARG_SOURCES ${batch})
    list(TRANSFORM batch REPLACE ".+" "#include \"${here}/\\0\"\n")
    list(JOIN batch "" text)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${out}_${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}")  # leaves a file alone that says the same
    list(APPEND joined ${file})
    math(EXPR number "${number} + 1")
  endwhile()
  set(${out} ${joined} PARENT_SCOPE)
endfunction()

# What is included is a header to gcc, and a header's types may not use unnamed namespaces.
set(joined_flags $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-subobject-linkage>)

function(pyrometer_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;DEPS;LIBS;PRIVATE_LIBS" ${ARGN})
  # A quarter less time to build (136 s, 99 s, measured 2026-11-23). The sources of one module therefore share their
  # unnamed namespaces: a name may stand there once.
  if(PYROMETER_UNITY)
    join_sources(joined_${name} 6 SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE})
    set(ARG_SOURCES ${joined_${name}})
  endif()
  add_library(pyrometer_${name} STATIC ${ARG_SOURCES})
  if(PYROMETER_UNITY)
    target_compile_options(pyrometer_${name} PRIVATE ${joined_flags})
    target_include_directories(pyrometer_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  endif()
  target_include_directories(pyrometer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_DEPS PREPEND pyrometer_)
  target_link_libraries(pyrometer_${name}
    PUBLIC pyrometer_contract ${ARG_DEPS} ${ARG_LIBS}
    PRIVATE pyrometer_flags ${ARG_PRIVATE_LIBS})
  if(TARGET pyrometer_precompiled)
    target_precompile_headers(pyrometer_${name} REUSE_FROM pyrometer_precompiled)
  endif()
endfunction()

# What a preset that runs only the unit tests has to build.
add_custom_target(unit_tests)

function(pyrometer_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;DEPS;LIBS;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  # Reading the headers of GoogleTest and the standard library is most of what a test takes to compile.
  if(PYROMETER_UNITY_TESTS)
    join_sources(joined_${name} 8 SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE})
    set(ARG_SOURCES ${joined_${name}})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  if(PYROMETER_UNITY_TESTS)
    target_compile_options(${name} PRIVATE ${joined_flags})
  endif()
  # Optimizing GoogleTest's macros takes as long again as reading them (with sanitizers 71 s instead of 35 s for eight
  # sources, measured 2026-11-27). Modules stay optimized, but for what is inline in their headers.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Debug>:-O0>)
  list(TRANSFORM ARG_DEPS PREPEND pyrometer_)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE
    pyrometer_flags ${ARG_DEPS} ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(unit IN_LIST ARG_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
  # Those that load BPF programs into the kernel look at ticks, of which there are more on a quiet machine.
  set(alone OFF)
  if(bpf IN_LIST ARG_LABELS)
    set(alone ON)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300 RUN_SERIAL ${alone})
endfunction()
