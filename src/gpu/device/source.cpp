// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/source.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

namespace catena::device {

namespace {

std::string_view skip_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r"), text.size()));
}

bool skip_word(std::string_view& text, std::string_view word) {
  text = skip_blanks(text);
  if (!text.starts_with(word)) {
    return false;
  }
  text.remove_prefix(word.size());
  return true;
}

/// The name between the brackets or quotes of an #include line; empty for any other line.
std::string_view included_name(std::string_view line) {
  if (!skip_word(line, "#") || !skip_word(line, "include")) {
    return {};
  }
  line = skip_blanks(line);
  if (line.empty() || (line.front() != '<' && line.front() != '"')) {
    return {};
  }
  const std::size_t end = line.find(line.front() == '<' ? '>' : '"', 1);
  return end == std::string_view::npos ? std::string_view() : line.substr(1, end - 1);
}

/// As the compiler joins lines.
std::string without_continuations(std::string text) {
  for (const std::string_view end : {"\\\n", "\\\r\n"}) {
    for (std::size_t at = text.find(end); at != std::string::npos; at = text.find(end, at)) {
      text.erase(at, end.size());
    }
  }
  return text;
}

bool has(std::string_view line, std::string_view word) { return line.find(word) != std::string_view::npos; }

/// Whether the line has a word that makes a compiler read a file, and is not sure to be no directive.
bool may_read(std::string_view line) {
  if (!has(line, "include") && !has(line, "embed") && !has(line, "import")) {
    return false;
  }
  const std::string_view text = skip_blanks(line);
  return text.starts_with('#') || text.starts_with("%:") || text.starts_with("?\?=") || has(line, "*/") ||
         has(line, "_Pragma") || has(line, "__has");
}

bool is_file_of(ProgramSource const& source, std::string_view name) {
  return std::ranges::any_of(source.files, [name](SourceFile const& file) {
    return file.name == name || std::string_view(file.name).ends_with(concat("/", name));
  });
}

bool is_pragma_once(std::string_view line) {
  return skip_word(line, "#") && skip_word(line, "pragma") && skip_word(line, "once") && skip_blanks(line).empty();
}

bool stays_inside(std::filesystem::path const& name) {
  return !name.empty() && !name.is_absolute() && name.has_filename() &&
         std::ranges::none_of(name, [](std::filesystem::path const& part) { return part == ".." || part == "."; });
}

class Flattener {
 public:
  explicit Flattener(ProgramSource const& source) : source_(source) {}

  void add(SourceFile const& file) {
    done_.insert(file.name);
    text_ += concat("#line 1 \"", file.name, "\"\n");
    int number = 0;
    for (std::string_view rest = file.text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      ++number;
      if (SourceFile const* included = find(included_name(line)); included != nullptr) {
        if (!done_.contains(included->name)) {
          add(*included);
        }
        text_ += concat("#line ", number + 1, " \"", file.name, "\"\n");
      } else if (is_pragma_once(line)) {
        text_ += '\n';  // in the main file of a compilation it would be a warning
      } else {
        text_ += concat(line, "\n");
      }
    }
  }
  std::string& text() { return text_; }

 private:
  SourceFile const* find(std::string_view name) const {
    for (SourceFile const& file : source_.files) {
      if (file.name == name && !name.empty()) {
        return &file;
      }
    }
    return nullptr;
  }

  ProgramSource const& source_;
  std::set<std::string, std::less<>> done_;
  std::string text_;
};

}  // namespace

Status check_source(ProgramSource const& source) {
  if (source.files.empty()) {
    return absl::InvalidArgumentError("a program without source files");
  }
  for (SourceFile const& file : source.files) {
    if (!stays_inside(file.name)) {
      return absl::InvalidArgumentError(concat("source file name '", file.name, "' is not a relative path"));
    }
  }
  return absl::OkStatus();
}

Status check_self_contained(ProgramSource const& source) {
  for (SourceFile const& file : source.files) {
    const std::string text = without_continuations(file.text);
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (!may_read(line)) {
        continue;
      }
      const std::string_view name = included_name(line);
      // behind the end of a comment there may be another directive
      if (has(line, "*/") || !skip_blanks(line).starts_with("#include") || name.empty() || !is_file_of(source, name)) {
        return absl::InvalidArgumentError(
            concat(file.name, ": '", line, "': of the files of the program, and nothing else, may be read"));
      }
    }
  }
  for (std::string const& define : source.defines) {
    if (define.find_first_of("\r\n") != std::string::npos) {
      return absl::InvalidArgumentError(concat("macro '", define, "' has more than one line"));
    }
  }
  return absl::OkStatus();
}

std::string flatten(ProgramSource const& source) {
  Flattener flattener(source);
  for (std::string const& define : source.defines) {
    const std::size_t equals = define.find('=');
    if (equals == std::string::npos) {
      flattener.text() += concat("#define ", define, " 1\n");
    } else {
      flattener.text() += concat("#define ", define.substr(0, equals), " ", define.substr(equals + 1), "\n");
    }
  }
  flattener.add(source.files.front());
  return std::move(flattener.text());
}

}  // namespace catena::device
