# SPDX-License-Identifier: Apache-2.0
# What `make deb` packs, by CPack: catena (program), libnca0 (component nca) and catena-dev (component sdk). What an
# installation does not have is added when it is packed: packaging/debian/complete.
file(GLOB clang_resources "/usr/lib/llvm-15/lib/clang/15.*.*")
get_filename_component(clang_version "${clang_resources}" NAME)

set(CATENA_PACKAGING "${CMAKE_SOURCE_DIR}/packaging/debian")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME catena)
set(CPACK_PACKAGE_CONTACT "Catena maintainers <maintainers@catena.invalid>" CACHE STRING "Who answers for the packages")
set(CPACK_COMPONENTS_ALL program nca sdk)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_SET_DESTDIR ON)  # the unit names the program where it will be, not where CPack collects it
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE "${CATENA_PACKAGING}/version.cmake")
set(CPACK_PRE_BUILD_SCRIPTS "${CATENA_PACKAGING}/complete.cmake")
set(CPACK_CATENA_SOURCE "${CMAKE_SOURCE_DIR}")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SOURCE catena)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "service chains of network functions on CPUs and GPUs
Catena runs chains of network functions (firewall, intrusion detection,
IPsec, NAT, load balancing, flow monitoring, routing) over live traffic or
captures. One file says what runs where, and whatever runs on a GPU or on the
CPU, the packets that come out are the same.

This package has the program, the service with its systemd unit (not enabled),
documentation and examples. Kernels for NVIDIA GPUs are compiled by NVRTC,
which is optional and not included: catena doctor says where to get it.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME catena)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
# the static check of kernels reads clang's own headers, by the path of one version
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "passwd, python3, libclang-common-15-dev (>= 1:${clang_version}), libclang-common-15-dev (<< 1:${clang_version}.1~)")
# the sandbox of NFs, the OpenCL device that is there without a GPU with the compiler of its kernels, interfaces as ports
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "bubblewrap, clang-15, pocl-opencl-icd, librte-mempool-ring23, librte-net-af-packet23, librte-net-tap23")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "catena-dev, dpdk, ethtool, iproute2, libcuda1, prometheus, python3-matplotlib")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
    "${CATENA_PACKAGING}/catena/postinst;${CATENA_PACKAGING}/catena/prerm;${CATENA_PACKAGING}/catena/postrm")

set(CPACK_COMPONENT_NCA_DESCRIPTION "network functions on packets, for C programs
An application that owns its packet loop hands packets to libnca and reads
what was found in them: string matches, rules, routes, ciphers, or what its
own kernel computes, on CPUs and GPUs. The calls are those of the NFV Compute
Acceleration draft.")
set(CPACK_DEBIAN_NCA_PACKAGE_NAME libnca0)
set(CPACK_DEBIAN_NCA_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_NCA_PACKAGE_RECOMMENDS "clang-15, pocl-opencl-icd")
set(CPACK_DEBIAN_NCA_PACKAGE_CONTROL_EXTRA "${CATENA_PACKAGING}/libnca0/triggers")

set(CPACK_COMPONENT_SDK_DESCRIPTION "what network functions for Catena and users of libnca are built with
Headers, libraries, the conformance suite and the CMake package that a network
function outside of Catena's tree is built against, and catena-new-nf, which
starts one. Also the header, the link and the pkg-config file of libnca.")
set(CPACK_DEBIAN_SDK_PACKAGE_NAME catena-dev)
set(CPACK_DEBIAN_SDK_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_SDK_DEPENDS program nca)
set(CPACK_DEBIAN_SDK_PACKAGE_DEPENDS "cmake, g++, libabsl-dev, libgmock-dev, libgtest-dev, libpcap-dev, libseccomp-dev, libspdlog-dev, libyaml-cpp-dev, ocl-icd-opencl-dev, pkg-config, python3")
set(CPACK_DEBIAN_SDK_PACKAGE_RECOMMENDS "clang-15, pocl-opencl-icd")

include(CPack)
