// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/record.hpp>

#include <catena/core/text.hpp>

namespace catena::nf {

std::string format_record(Instance const& instance, RecordLine const& line) {
  const std::string_view verdict = line.verdict == packet::Verdict::kDrop    ? "drop"
                                   : line.verdict == packet::Verdict::kAlert ? "alert"
                                   : line.verdict == packet::Verdict::kReply ? "reply"
                                                                             : "pass";
  // the name comes from the chain file, which allows only letters, digits, '-', '_' and '.': nothing to escape
  std::string text =
      concat(R"({"packet":)", line.packet, R"(,"nf":")", instance.name(), R"(","verdict":")", verdict, "\"");
  if (line.reason >= 0) {
    text += concat(R"(,"reason":")", instance.reason_name(static_cast<std::uint32_t>(line.reason)), "\"");
  }
  if (!line.fields.empty()) {
    text += concat(",", line.fields);
  }
  text += '}';
  return text;
}

}  // namespace catena::nf
