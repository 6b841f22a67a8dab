# SPDX-License-Identifier: Apache-2.0
# The three functions that every CMakeLists.txt of the project uses.

# Flags that every target gets: warnings are errors, sanitizers on request.
function(catena_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Werror)
  if(CATENA_SANITIZE)
    # the sanitizers' own code makes GCC 12 see uninitialized values inside the standard library
    target_compile_options(${target} PRIVATE -fsanitize=${CATENA_SANITIZE} -fno-omit-frame-pointer -g
                                             -Wno-maybe-uninitialized)
    target_link_options(${target} PUBLIC -fsanitize=${CATENA_SANITIZE})
  endif()
endfunction()

# catena_add_layer(NAME SOURCES ... DEPENDS ...): the static library catena_NAME, one per layer.
# DEPENDS names the layers and libraries below it; tools/check-layers holds the tree to the same order.
function(catena_add_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(catena_${name} STATIC ${ARG_SOURCES})
  target_include_directories(catena_${name} PUBLIC "${CMAKE_SOURCE_DIR}/include" PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(catena_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  catena_compile_options(catena_${name})
endfunction()

# catena_add_test(NAME SOURCES ... DEPENDS ... [LABELS ...]): one GoogleTest program, each case known to CTest.
function(catena_add_test name)
  if(NOT CATENA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE CATENA_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  catena_compile_options(${name})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()

# catena_embed(OUTPUT_CPP SYMBOL FILES...): text files as a C++ table of {name, text}, for kernel sources.
function(catena_embed output symbol)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DSYMBOL=${symbol}" "-DFILES=${ARGN}" -P
            "${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake"
    DEPENDS ${ARGN} "${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake"
    VERBATIM)
endfunction()

# catena_add_nf(NAME SOURCES ... [KERNEL file...] [TESTS ...] [BENCH ...] [DEPENDS ...])
# One network function: an object library that defines `catena_nf_NAME()` (its descriptor). KERNEL lists the kernel
# source first and then the headers that it shares with the host code; they are embedded as `catena_kernel_NAME`.
# BENCH: the Google Benchmark program NAME_bench, built with CATENA_BUILD_BENCH.
# Nothing outside the NF's directory names it: the list of built-in NFs is generated from these calls.
function(catena_add_nf name)
  cmake_parse_arguments(ARG "" "" "SOURCES;KERNEL;TESTS;BENCH;DEPENDS" ${ARGN})
  set(sources ${ARG_SOURCES})
  if(ARG_KERNEL)
    set(kernel_files "")
    foreach(file ${ARG_KERNEL})
      list(APPEND kernel_files "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    endforeach()
    set(embedded "${CMAKE_CURRENT_BINARY_DIR}/${name}_kernel_text.cpp")
    catena_embed("${embedded}" "catena_kernel_${name}" ${kernel_files})
    list(APPEND sources "${embedded}")
  endif()
  add_library(catena_nf_${name} OBJECT ${sources})
  target_include_directories(catena_nf_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(catena_nf_${name} PUBLIC catena_nf ${ARG_DEPENDS})
  catena_compile_options(catena_nf_${name})
  set_property(GLOBAL APPEND PROPERTY CATENA_NFS ${name})
  if(ARG_TESTS)
    catena_add_test(${name}_test SOURCES ${ARG_TESTS} DEPENDS catena_nf_${name}
                    catena_nf_conformance LABELS nf)
  endif()
  if(ARG_BENCH AND CATENA_BUILD_BENCH)
    add_executable(${name}_bench ${ARG_BENCH})
    target_link_libraries(${name}_bench PRIVATE catena_nf_${name} catena_nf_testing benchmark::benchmark)
    catena_compile_options(${name}_bench)
  endif()
endfunction()
