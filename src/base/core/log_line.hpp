// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/escape.hpp>

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

/// The text of a log message in a pattern of spdlog: `%v` as log_line().
class LogLineFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(spdlog::details::log_msg const& message, std::tm const& /*time*/, spdlog::memory_buf_t& out) override {
    const std::string line = log_line({message.payload.data(), message.payload.size()});
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LogLineFlag>(); }
};

/// Has the default logger write `pattern`, with each message as log_line(). Each program calls this before it logs: no
/// caller of spdlog escapes by itself.
inline void set_log_pattern(std::string pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LogLineFlag>('v').set_pattern(std::move(pattern));
  spdlog::set_formatter(std::move(formatter));
}

}  // namespace catena
