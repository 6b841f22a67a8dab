# SPDX-License-Identifier: Apache-2.0
# How a network function is built: inside the tree as a part of the program, and in any other project, against an
# installed Catena, as a shared object that the program loads. The NF's directory is the same in both.
set(CATENA_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/EmbedText.cmake")
set(CATENA_PLUGIN_TEMPLATE "${CMAKE_CURRENT_LIST_DIR}/plugin.cpp.in")

# catena_embed(OUTPUT_CPP SYMBOL FILES...): text files as a C++ table of {name, text}, for kernel sources.
function(catena_embed output symbol)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DSYMBOL=${symbol}" "-DFILES=${ARGN}" -P "${CATENA_EMBED_SCRIPT}"
    DEPENDS ${ARGN} "${CATENA_EMBED_SCRIPT}"
    VERBATIM)
endfunction()

# catena_add_nf(NAME SOURCES ... [KERNEL file...] [TESTS ...] [BENCH ...] [DEPENDS ...])
# One network function: SOURCES define `catena_nf_NAME()` (its descriptor). KERNEL lists the kernel source first and
# then the headers that it shares with the host code; they are embedded as `catena_kernel_NAME`. TESTS become the
# program NAME_test. Nothing outside the NF's directory names it.
#   In the tree: a part of the program; the list of built-in NFs is generated from these calls. BENCH: the Google
#   Benchmark program NAME_bench, built with CATENA_BUILD_BENCH.
#   Elsewhere: the shared object NAME.so in the build folder, installed to lib/catena/nfs. BENCH is not built.
function(catena_add_nf name)
  cmake_parse_arguments(ARG "" "" "SOURCES;KERNEL;TESTS;BENCH;DEPENDS" ${ARGN})
  set(sources ${ARG_SOURCES})
  if(ARG_KERNEL)
    list(TRANSFORM ARG_KERNEL PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    set(embedded "${CMAKE_CURRENT_BINARY_DIR}/${name}_kernel_text.cpp")
    catena_embed("${embedded}" "catena_kernel_${name}" ${ARG_KERNEL})
    list(APPEND sources "${embedded}")
  endif()
  add_library(catena_nf_${name} OBJECT ${sources})
  target_include_directories(catena_nf_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  if(CATENA_IN_TREE)
    catena_add_builtin_nf(${name} "${ARG_TESTS}" "${ARG_BENCH}" "${ARG_DEPENDS}")
  else()
    catena_add_plugin_nf(${name} "${ARG_TESTS}" "${ARG_DEPENDS}")
  endif()
endfunction()

function(catena_add_builtin_nf name tests bench depends)
  target_link_libraries(catena_nf_${name} PUBLIC catena_nf ${depends})
  catena_compile_options(catena_nf_${name})
  set_property(GLOBAL APPEND PROPERTY CATENA_NFS ${name})
  if(tests)
    catena_add_test(${name}_test SOURCES ${tests} DEPENDS catena_nf_${name} catena_nf_conformance LABELS nf)
  endif()
  if(bench AND CATENA_BUILD_BENCH)
    add_executable(${name}_bench ${bench})
    target_include_directories(${name}_bench PRIVATE "${CMAKE_SOURCE_DIR}/src")
    target_link_libraries(${name}_bench PRIVATE catena_nf_${name} catena_nf_testing benchmark::benchmark)
    catena_compile_options(${name}_bench)
  endif()
endfunction()

function(catena_add_plugin_nf name tests depends)
  target_link_libraries(catena_nf_${name} PUBLIC Catena::nf ${depends})
  set_target_properties(catena_nf_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  set(CATENA_NF_NAME ${name})
  configure_file("${CATENA_PLUGIN_TEMPLATE}" "${CMAKE_CURRENT_BINARY_DIR}/${name}_plugin.cpp" @ONLY)
  # of Catena only the headers: the program that loads the object has the rest
  add_library(${name} MODULE "${CMAKE_CURRENT_BINARY_DIR}/${name}_plugin.cpp" $<TARGET_OBJECTS:catena_nf_${name}>)
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:catena_nf_${name},INTERFACE_INCLUDE_DIRECTORIES>
                                             $<TARGET_PROPERTY:Catena::core,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:catena_nf_${name},INTERFACE_COMPILE_DEFINITIONS>)
  target_link_libraries(${name} PRIVATE absl::status absl::statusor absl::strings spdlog::spdlog ${depends})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden)
  install(TARGETS ${name} LIBRARY DESTINATION lib/catena/nfs)
  if(tests AND NOT TARGET Catena::nf_conformance)
    message(WARNING "${name}: its tests are not built: Catena was installed without GoogleTest (libgtest-dev, libgmock-dev)")
  elseif(tests)
    include(GoogleTest)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE catena_nf_${name} Catena::nf_conformance GTest::gmock GTest::gtest
                                               GTest::gtest_main)
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
  endif()
endfunction()
