// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Requirements for every NF, on the CPU and on every device. An NF joins with one file:
///
///     // nfs/router/conformance.cpp
///     CATENA_NF_CONFORMANCE(router, catena_nf_router(), [] {
///       return Subject{.yaml = "routes: routes.txt",
///                      .files = {{"routes.txt", "10.0.0.0/8 1\n"}},
///                      .frames = {make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "routed"),
///                                 make_frame(17, 0xC0A80001, 0x0B000001, 1, 2, "no route")}};
///     })
///
/// The suite adds hostile frames of its own and checks: the same output for batches of 0, 1, 31, 32, 33, 255, 256 and
/// 257 packets and for launches of several batches; no change to packets dropped before, even if all of a batch are;
/// truncated headers, IP options, VLAN tags and fragments; records in packet order; counters that add up; equal bytes,
/// verdicts, ports, records and counts from kernel and CPU; compilation of the kernel for CUDA; hints that name all
/// fields read and written on the CPU (docs/writing-an-nf.md describes the check); an unknown configuration key refused
/// with its position; equal shards from the sharders of an NF and of its replacement.
namespace catena::nf::testing {

/// One configuration of an NF, and traffic with as many different results as possible.
struct Subject {
  std::string yaml;                                             ///< the NF's `config:`; empty or `{}` without keys
  std::vector<std::pair<std::string, std::string>> files = {};  ///< name and text; created under the names in `yaml`
  std::vector<Frame> frames;                                    ///< repeated until the largest batches are full
  std::vector<std::pair<std::string, std::uint32_t>> reached =
      {};  ///< drop reasons and how often `frames` must cause them
};

/// Registers the suite `NAME_conformance`. `make` is called once per test.
bool register_conformance(std::string const& name, Descriptor const& descriptor, std::function<Subject()> const& make);

}  // namespace catena::nf::testing

/// At global scope of a test source. The last argument is a callable without arguments that returns a Subject. It is in
/// catena::nf::testing, so its names need no prefix.
#define CATENA_NF_CONFORMANCE(name, descriptor, ...)                                                        \
  namespace catena::nf::testing {                                                                           \
  namespace {                                                                                               \
  [[maybe_unused]] const bool kConformanceOf_##name = register_conformance(#name, descriptor, __VA_ARGS__); \
  }                                                                                                         \
  }
