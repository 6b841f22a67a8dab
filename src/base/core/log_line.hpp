// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/log_context.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace catena {

/// `text` as one line of the log: escaped(), with "; " for line feeds. So neither users nor files nor other processes
/// can forge log lines or control a terminal.
inline std::string log_line(std::string_view text) {
  std::string line;
  while (true) {
    const std::size_t end = text.find('\n');
    line += escaped(text.substr(0, end));
    if (end == std::string_view::npos) {
      return line;
    }
    line += "; ";
    text.remove_prefix(end + 1);
  }
}

/// Whether a message begins with the name of its chain: "office: runs".
inline bool names_chain(std::string_view text) {
  std::string const& chain = LogContext::chain();
  return text.size() > chain.size() && text.starts_with(chain) && text[chain.size()] == ':';
}

/// The text of a log message in a pattern of spdlog: `%v` as log_line(), after the name of the chain.
class LogLineFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(spdlog::details::log_msg const& message, std::tm const& /*time*/, spdlog::memory_buf_t& out) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    std::string const& chain = LogContext::chain();
    const std::string line = chain.empty() || names_chain(text) ? log_line(text) : log_line(concat(chain, ": ", text));
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LogLineFlag>(); }
};

/// `%J`: log_line() within a string of JSON. escaped() leaves no control characters.
class JsonLineFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(spdlog::details::log_msg const& message, std::tm const& /*time*/, spdlog::memory_buf_t& out) override {
    for (const char letter : log_line({message.payload.data(), message.payload.size()})) {
      if (letter == '"' || letter == '\\') {
        out.push_back('\\');
      }
      out.push_back(letter);
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonLineFlag>(); }
};

/// `%K`: chain and stage of the message, as members of an object of JSON; each with a comma before it.
class ContextFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(spdlog::details::log_msg const& /*message*/, std::tm const& /*time*/,
              spdlog::memory_buf_t& out) override {
    // names of chains and NFs have no character to escape
    std::string members;
    if (!LogContext::chain().empty()) {
      members += concat(R"(,"chain":")", LogContext::chain(), "\"");
    }
    if (!LogContext::stage().empty()) {
      members += concat(R"(,"stage":")", LogContext::stage(), "\"");
    }
    out.append(members.data(), members.data() + members.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<ContextFlag>(); }
};

/// `%Q`: the priority of syslog(3), a digit.
class PriorityFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(spdlog::details::log_msg const& message, std::tm const& /*time*/, spdlog::memory_buf_t& out) override {
    constexpr std::string_view kPriorities = "7764322";  // by level: trace to off
    out.push_back(kPriorities[static_cast<std::size_t>(message.level)]);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PriorityFlag>(); }
};

/// Has the default logger write `pattern`, with each message as log_line(). Each program calls this before it logs: no
/// caller of spdlog escapes by itself.
inline void set_log_pattern(std::string pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LogLineFlag>('v').add_flag<JsonLineFlag>('J').add_flag<ContextFlag>('K').add_flag<PriorityFlag>(
      'Q');
  formatter->set_pattern(std::move(pattern));
  spdlog::set_formatter(std::move(formatter));
}

/// Patterns of a service's log: a time and a level for readers, an object of JSON, and the form of journald, which has
/// the time (sd-daemon(3)).
inline constexpr const char* kTextLog = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
inline constexpr const char* kJsonLog = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l"%K,"message":"%J"})";
inline constexpr const char* kJournalLog = "<%Q>%v";

}  // namespace catena
