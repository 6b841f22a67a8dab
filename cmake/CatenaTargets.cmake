# SPDX-License-Identifier: Apache-2.0
# The functions that every CMakeLists.txt of the project uses; those that other projects use too are in CatenaNf.cmake.
include(CatenaNf)
set(CATENA_LIST_SUITES "${CMAKE_CURRENT_LIST_DIR}/ListSuites.cmake")

# Flags that every target gets: warnings are errors, sanitizers on request. PCH names the target whose precompiled
# headers it shares. COLD: see catena_add_layer().
function(catena_compile_options target)
  cmake_parse_arguments(ARG "COLD" "PCH" "" ${ARGN})
  if(ARG_COLD)
    set(ARG_PCH catena_cold_pch)
    target_compile_options(${target} PRIVATE ${CATENA_COLD_OPTIONS})
  elseif(NOT ARG_PCH)
    set(ARG_PCH catena_pch)
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Werror)
  if(CATENA_SANITIZE)
    # the sanitizers' own code makes GCC 12 see uninitialized values inside the standard library. AddressSanitizer finds
    # what null pointers and objects that are too small are used for, and few objects here have virtual functions; to ask
    # before each use costs a sixth of a build
    target_compile_options(${target} PRIVATE -fsanitize=${CATENA_SANITIZE} -fno-sanitize=null,object-size,vptr
                                             -fno-omit-frame-pointer -g1 -Wno-maybe-uninitialized)
    target_link_options(${target} PUBLIC -fsanitize=${CATENA_SANITIZE})
  endif()
  if(CATENA_UNITY_SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CATENA_UNITY_SOURCES})
    # GCC takes what is included for a header, and so warns of each type that has one of an anonymous namespace inside
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(NOT ARG_PCH STREQUAL target)
    # -fPIC in programs too, where CMake has -fPIE: precompiled headers serve only sources with the same
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
    target_precompile_headers(${target} REUSE_FROM ${ARG_PCH})
  endif()
endfunction()

# catena_add_pch(NAME HEADERS ... DEPENDS ... [OPTIONS ...]): headers that many sources include, compiled once. Sources
# name what they use all the same: clang-tidy and the fuzzers' build read them without.
function(catena_add_pch name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS;OPTIONS" ${ARGN})
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  file(GENERATE OUTPUT "${source}" CONTENT "// Generated: a target needs a source.\n")
  add_library(${name} OBJECT "${source}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  catena_compile_options(${name} PCH ${name})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
endfunction()

# what no packet passes is optimized little: sanitizers double the optimizer's work
if(CATENA_SANITIZE)
  set(CATENA_COLD_OPTIONS -O0)
else()
  set(CATENA_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)
endif()

# most of a test's build time is optimizing GoogleTest's templates; what is tested keeps the build's own level
if(CATENA_SANITIZE)
  set(CATENA_TEST_OPTIONS -O0)
  if(CATENA_SANITIZE MATCHES "fuzzer")
    list(APPEND CATENA_TEST_OPTIONS -fno-sanitize=fuzzer-no-link)  # no fuzz target runs the code of tests
  endif()
else()
  set(CATENA_TEST_OPTIONS -O1)
endif()

# catena_export_to_plugins(PROGRAM): NFs that are loaded as shared objects take what they use of the layers below from
# the program that loads them: all of it is in it.
function(catena_export_to_plugins program)
  set_target_properties(${program} PROPERTIES
    ENABLE_EXPORTS ON
    LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,catena_packet,catena_device,catena_kernel,catena_nf")
endfunction()

# catena_add_layer(NAME SOURCES ... DEPENDS ... [COLD]): the static library catena_NAME, one per layer. COLD: no packet
# passes it, so that it is optimized as little as tests are.
# DEPENDS names the layers and libraries below it; tools/check-layers holds the tree to the same order.
function(catena_add_layer name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(catena_${name} STATIC ${ARG_SOURCES})
  target_include_directories(catena_${name} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>"
                                                   "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
                                            PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(catena_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  if(ARG_COLD)
    catena_compile_options(catena_${name} COLD)
  else()
    catena_compile_options(catena_${name})
  endif()
endfunction()

# catena_install_layer(NAME): the layer is part of what NFs outside the tree are built against, as Catena::NAME.
function(catena_install_layer name)
  set_target_properties(catena_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS catena_${name} EXPORT Catena COMPONENT sdk)
  add_dependencies(installed catena_${name})
endfunction()

# catena_install_program(TARGET FOLDER): the program goes to FOLDER of an installation.
function(catena_install_program target folder)
  install(TARGETS ${target} DESTINATION "${folder}")
  add_dependencies(installed ${target})
endfunction()

# Runs take and give back the same hundred megabytes each time: glibc keeps them in the process. It would hand each to
# the kernel, which clears it page by page; that was half of the time of chains.
set(CATENA_KEPT_MEMORY "MALLOC_MMAP_MAX_=0;MALLOC_TRIM_THRESHOLD_=17179869184;MALLOC_ARENA_MAX=2")

if(CATENA_SANITIZE MATCHES "address")
  set(CATENA_TEST_RUNNER "${CMAKE_SOURCE_DIR}/tools/sanitizers/run")
endif()

# catena_add_test(NAME SOURCES ... DEPENDS ... [LABELS ...] [FRESH]): one GoogleTest program, each of its suites known to
# CTest, in parts of at most 60 cases; FRESH: each case by itself, in a process that gives memory back as a user's does. Where its labels keep it from a sanitizer build (no_asan, no_tsan) there
# is no program. Kinds of tests are labels: `system` (the gate runs it as it is built for users), `hostile` (the same, with
# sanitizers), `bench` and `soak` (not in the gate); all others are unit tests, which the gate runs with sanitizers.
function(catena_add_test name)
  cmake_parse_arguments(ARG "FRESH" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT CATENA_BUILD_TESTS OR (CATENA_SANITIZE MATCHES "address" AND "no_asan" IN_LIST ARG_LABELS)
     OR (CATENA_SANITIZE MATCHES "thread" AND "no_tsan" IN_LIST ARG_LABELS))
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  catena_compile_options(${name} PCH catena_test_pch)
  target_compile_options(${name} PRIVATE ${CATENA_TEST_OPTIONS})

  set(cases 60)
  set(memory ${CATENA_KEPT_MEMORY})
  if(ARG_FRESH)
    set(cases 1)
    set(memory "")
  endif()
  set(kinds ${ARG_LABELS})
  list(FILTER kinds INCLUDE REGEX "^(system|bench|soak)$")
  if("hostile" IN_LIST ARG_LABELS)
    list(APPEND ARG_LABELS asan)
  elseif(NOT kinds)
    list(APPEND ARG_LABELS unit asan)
  endif()
  if("asan" IN_LIST ARG_LABELS AND "no_asan" IN_LIST ARG_LABELS)
    message(FATAL_ERROR "${name}: no_asan, and no label that lets it run elsewhere: no build of the gate would run it")
  endif()
  catena_gate_builds(${name} ${ARG_LABELS})
  set(suites "${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake")
  add_custom_command(TARGET ${name} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DPROGRAM=$<TARGET_FILE:${name}>" -DNAME=${name} "-DOUTPUT=${suites}" -DCASES=${cases}
            "-DMEMORY=${memory}" "-DRUNNER=${CATENA_TEST_RUNNER}" -DTIMEOUT=900 "-DLABELS=${ARG_LABELS}" -P "${CATENA_LIST_SUITES}")
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${name}_tests.cmake")
  file(WRITE "${script}" "if(EXISTS \"${suites}\")
  include(\"${suites}\")
else()
  add_test(${name} not-built)
  set_tests_properties(${name} PROPERTIES LABELS \"${ARG_LABELS}\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()

# catena_gate_builds(TARGET LABELS...): `system_tests` and `asan_tests` are what the gate builds of the tests in the two
# builds that it makes.
add_custom_target(system_tests)
add_custom_target(asan_tests)
function(catena_gate_builds target)
  foreach(label system asan)
    if(label IN_LIST ARGN)
      add_dependencies(${label}_tests ${target})
    endif()
  endforeach()
endfunction()
