// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

#include "exporter.hpp"

namespace catena::monitor {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr std::size_t kLongestLine = 512;

std::string_view name_of(EndReason reason) {
  switch (reason) {
    case EndReason::kIdle:
      return "idle";
    case EndReason::kActive:
      return "active";
    case EndReason::kForcedEnd:
      return "forced_end";
    case EndReason::kLackOfResources:
      return "lack_of_resources";
  }
  return "";
}

class JsonExporter final : public Exporter {
 public:
  explicit JsonExporter(std::unique_ptr<Output> output) : Exporter(std::move(output)) {
    lines_.reserve(kBufferBytes + kLongestLine);
  }

  void add(FlowRecord const& record, std::uint64_t clock_ns) override {
    const packet::FlowKey key = record.key.whole();
    fmt::format_to(std::back_inserter(lines_),
                   R"({{"src":"{}","dst":"{}","sport":{},"dport":{},"protocol":{},"tos":{},"packets":{},"bytes":{},)"
                   R"("first_ns":{},"last_ns":{},"tcp_flags":{},"end_reason":"{}"}})"
                   "\n",
                   to_string(key.source), to_string(key.destination), key.source_port, key.destination_port,
                   key.protocol, record.tos, record.packets, record.bytes, record.first_ns, record.last_ns,
                   record.tcp_flags, name_of(record.end_reason));
    ++records_;
    if (lines_.size() >= kBufferBytes) {
      flush(clock_ns);
    }
  }

  void flush(std::uint64_t /*clock_ns*/) override {
    if (records_ > 0) {
      output().write({reinterpret_cast<const std::uint8_t*>(lines_.data()), lines_.size()}, records_);
      lines_.clear();
      records_ = 0;
    }
  }

 private:
  std::string lines_;
  std::uint64_t records_ = 0;  // in lines_
};

}  // namespace

std::unique_ptr<Exporter> json_exporter(std::unique_ptr<Output> output) {
  return std::make_unique<JsonExporter>(std::move(output));
}

}  // namespace catena::monitor
