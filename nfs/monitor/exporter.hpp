// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow.hpp"
#include "output.hpp"

#include <cstdint>
#include <memory>

namespace catena::monitor {

/// Encodes records and writes them to an Output in larger pieces. Not thread safe.
class Exporter {
 public:
  explicit Exporter(std::unique_ptr<Output> output) : output_(std::move(output)) {}
  virtual ~Exporter() = default;

  /// `clock_ns`, here and below: the time, ns since 1970. It never decreases from one call to the next.
  virtual void add(FlowRecord const& record, std::uint64_t clock_ns) = 0;
  /// Writes buffered records.
  virtual void flush(std::uint64_t clock_ns) = 0;

  /// After the last record. As Output::finish().
  Status finish(std::uint64_t clock_ns) {
    flush(clock_ns);
    return output_->finish();
  }
  std::uint64_t lost_records() const { return output_->lost_records(); }

 protected:
  Output& output() { return *output_; }

 private:
  std::unique_ptr<Output> output_;
};

/// One JSON object per line:
/// {"src":"192.0.2.1","dst":"192.0.2.2","sport":4000,"dport":80,"protocol":6,"tos":0,"packets":3,"bytes":180,
///  "first_ns":1,"last_ns":9,"tcp_flags":19,"end_reason":"idle"}
std::unique_ptr<Exporter> json_exporter(std::unique_ptr<Output> output);

struct IpfixOptions {
  std::uint32_t observation_domain = 1;
  /// Messages, and nanoseconds, from one transmission of the templates to the next (RFC 7011, section 8.4), whichever
  /// is over first; 0: no such limit. With neither only the first message has them (files).
  std::uint32_t template_refresh = 0;
  std::uint64_t template_refresh_ns = 0;
};
/// IPFIX messages of at most kMaxMessageBytes (RFC 7011); consecutive in a file (RFC 5655). flush() sends templates
/// that are due by time, also without records: no message has an export time that much later than its templates.
std::unique_ptr<Exporter> ipfix_exporter(std::unique_ptr<Output> output, IpfixOptions options);

/// Longest message: with UDP, IPv4 and tunnel headers it fits an Ethernet frame (RFC 7011, section 10.3.3).
inline constexpr std::size_t kMaxMessageBytes = 1400;

}  // namespace catena::monitor
