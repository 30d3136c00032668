# SPDX-License-Identifier: Apache-2.0
#
# pyrometer_bpf_skeleton(NAME SOURCE file.bpf.c [DEPENDS header...])
#   Compiles SOURCE for the BPF target and generates NAME.skel.h from it; link the INTERFACE
#   target NAME_skeleton to include it. Needs no kernel BTF and no generated vmlinux.h: the
#   few kernel types in use are declared in bpf/types.bpf.h and relocated at load (CO-RE).

# clang-NN where a distribution has no plain name for it.
find_program(BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)

function(pyrometer_bpf_skeleton name)
  cmake_parse_arguments(ARG "" "SOURCE" "DEPENDS" ${ARGN})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(arch arm64)
  else()
    set(arch x86)
  endif()
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  set(linked ${CMAKE_CURRENT_BINARY_DIR}/${name}.linked.bpf.o)
  set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)
  # BTF names source files: by the same paths wherever the checkout is, so that each makes the same skeleton.
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -std=gnu11 -Wall -Wextra -Werror
            -Wno-unused-parameter -D__TARGET_ARCH_${arch}
            -ffile-prefix-map=${PROJECT_SOURCE_DIR}=/pyrometer
            -I${PROJECT_SOURCE_DIR}/include -isystem /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
            -MMD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source} ${ARG_DEPENDS}
    DEPFILE ${object}.d
    COMMENT "BPF ${ARG_SOURCE}" VERBATIM)
  add_custom_command(
    OUTPUT ${skeleton}
    # Linking strips the DWARF and keeps the BTF.
    COMMAND ${BPFTOOL} gen object ${linked} ${object}
    COMMAND ${BPFTOOL} gen skeleton ${linked} name ${name}_bpf > ${skeleton}
    DEPENDS ${object}
    COMMENT "skeleton ${name}.skel.h" VERBATIM)
  add_custom_target(${name}_skeleton_header DEPENDS ${skeleton})
  add_library(${name}_skeleton INTERFACE)
  add_dependencies(${name}_skeleton ${name}_skeleton_header)
  target_include_directories(${name}_skeleton SYSTEM INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
  # bpftool writes C's name for it into the header; g++ knows that in C++ too, clang does not.
  target_compile_definitions(${name}_skeleton INTERFACE _Bool=bool)
  target_link_libraries(${name}_skeleton INTERFACE bpf elf z)
endfunction()
