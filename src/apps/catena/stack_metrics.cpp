// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/stack_metrics.hpp"

#include <catena/core/text.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace catena::cli {
namespace {

/// A metric's lines. `type`: counter or gauge.
class Text {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += concat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void add(std::uint64_t value) { text_ += concat(name_, " ", value, "\n"); }
  void add(std::string_view label, std::string_view of, std::uint64_t value) {
    text_ += concat(name_, "{", label, "=\"", of, "\"} ", value, "\n");
  }
  std::string take() { return std::move(text_); }

 private:
  std::string_view name_;
  std::string text_;
};

std::string metrics_of(stack::StackReport const& report, std::uint32_t restarts) {
  struct Plain {
    std::string_view name;
    std::string_view type;
    std::string_view help;
    std::uint64_t value;
  };
  const std::array plain{
      Plain{"catena_stack_cycles_total", "counter", "Cycles of the time since the process began.", report.elapsed},
      Plain{"catena_stack_connections", "gauge", "Open connections.", report.connections},
      Plain{"catena_stack_applications", "gauge", "Attached applications.", report.applications},
      Plain{"catena_stack_buffers_in_use", "gauge", "Send buffers in use.", report.buffers_in_use},
      Plain{"catena_stack_accepted_connections_total", "counter", "Connections given to an application.",
            report.sessions.accepted},
      Plain{"catena_stack_refused_connections_total", "counter", "Connections without an application with space.",
            report.sessions.refused},
      Plain{"catena_stack_failed_connections_total", "counter", "Connections reset for a copy.",
            report.sessions.failed},
      Plain{"catena_stack_violations_total", "counter", "Wrong numbers of applications.", report.sessions.violations},
      Plain{"catena_stack_received_bytes_total", "counter", "Bytes given to applications.",
            report.sessions.received_bytes},
      Plain{"catena_stack_sent_bytes_total", "counter", "Bytes taken from applications.", report.tx.bytes},
      Plain{"catena_stack_lost_engines_total", "counter", "Copy engines lost.", report.copies.losses},
      Plain{"catena_stack_quarantined_applications_total", "counter", "Applications with an illegal copy.",
            report.copies.quarantined},
      Plain{"catena_stack_restarts_total", "counter", "Restarts of the stack's process.", restarts},
  };
  Text text;
  for (Plain const& each : plain) {
    text.begin(each.name, each.type, each.help);
    text.add(each.value);
  }
  text.begin("catena_stack_pieces_total", "counter", "Pieces of sent bytes, by the kind of their copy.");
  text.add("by", "reference", report.tx.by_reference);
  text.add("by", "cpu", report.tx.by_cpu);
  text.add("by", "engine", report.tx.by_engine);
  text.begin("catena_stack_part_cycles_total", "counter", "Cycles of the stack's core by part.");
  for (std::size_t part = 0; part < report.cycles.size(); ++part) {
    text.add("part", stack::kPartNames[part], report.cycles[part]);
  }
  return text.take();
}

}  // namespace

service::HttpResponse answer_stack_metrics(stack::StackHost const& host, service::HttpRequest const& request) {
  if (request.path != "/metrics") {
    return service::error_response(404, absl::NotFoundError("only /metrics is here"));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    service::HttpResponse refused = service::error_response(405, absl::InvalidArgumentError("only GET and HEAD"));
    refused.allow = "GET, HEAD";
    return refused;
  }
  return {.status = 200,
          .body = metrics_of(host.report(), host.restarts()),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace catena::cli
