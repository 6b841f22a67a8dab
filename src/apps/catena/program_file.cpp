// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/program_file.hpp"

#include <catena/core/text.hpp>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/core/file_descriptor.hpp"

namespace catena::cli {
namespace {

constexpr std::size_t kMaxNotes = 64 * 1024;  ///< bytes of one segment
constexpr std::size_t kMaxHeaders = 256;      ///< of a program
constexpr int kMaxInterpreters = 4;           ///< one of another, as the kernel has it

/// Up to `bytes` of the file.
std::string read_at(FileDescriptor const& file, std::uint64_t at, std::size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), bytes, static_cast<off_t>(at));
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return text;
}

/// The header at `at` of `text`; all zeros beyond its end.
template <typename Header>
Header header_at(std::string_view text, std::size_t at) {
  Header header{};
  if (at <= text.size() && text.size() - at >= sizeof header) {
    std::memcpy(&header, text.data() + at, sizeof header);
  }
  return header;
}

/// As execvp() searches; empty: it finds no file.
std::string find_program(std::string const& name) {
  if (name.find('/') != std::string::npos) {
    return name;
  }
  const char* const path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/bin:/usr/bin" : path;
  for (bool has_more = true; has_more;) {
    const std::size_t end = left.find(':');
    const std::string_view folder = left.substr(0, end);
    std::string candidate = folder.empty() ? name : concat(folder, "/", name);
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    has_more = end != std::string_view::npos;
    left.remove_prefix(has_more ? end + 1 : left.size());
  }
  return {};
}

/// The note of Go's linker, which has the identity of the build.
bool has_go_note(std::string_view notes) {
  constexpr std::uint32_t kBuildId = 4;
  constexpr std::string_view kGo("Go\0", 3);
  const auto aligned = [](std::uint32_t bytes) { return (std::size_t{bytes} + 3) / 4 * 4; };
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    const auto note = header_at<Elf64_Nhdr>(notes, at);
    at += sizeof note;
    if (note.n_type == kBuildId && notes.substr(std::min(at, notes.size()), note.n_namesz).starts_with(kGo)) {
      return true;
    }
    at += aligned(note.n_namesz) + aligned(note.n_descsz);
  }
  return false;
}

/// Why no library gets the program's calls; empty: one does, or the file is no program of this machine's kind.
std::string_view why_not(FileDescriptor const& file, std::string_view start) {
  const auto program = header_at<Elf64_Ehdr>(start, 0);
  if (!start.starts_with(ELFMAG) || program.e_ident[EI_CLASS] != ELFCLASS64 ||
      program.e_phentsize != sizeof(Elf64_Phdr)) {
    return {};
  }
  const std::size_t count = std::min<std::size_t>(program.e_phnum, kMaxHeaders);
  const std::string headers = read_at(file, program.e_phoff, count * sizeof(Elf64_Phdr));
  if (headers.size() < count * sizeof(Elf64_Phdr)) {
    return {};
  }
  bool has_loader = false;
  bool is_go = false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto header = header_at<Elf64_Phdr>(headers, i * sizeof(Elf64_Phdr));
    has_loader = has_loader || header.p_type == PT_INTERP;
    if (header.p_type == PT_NOTE) {
      is_go = is_go || has_go_note(read_at(file, header.p_offset, std::min<std::size_t>(header.p_filesz, kMaxNotes)));
    }
  }
  return is_go         ? "is written in Go, which enters the kernel without libc"
         : !has_loader ? "is linked statically, so it loads no library"
                       : std::string_view();
}

}  // namespace

Status check_loads_libraries(std::string const& name) {
  std::string path = find_program(name);
  for (int depth = 0; depth < kMaxInterpreters && !path.empty(); ++depth) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const std::string start = file ? read_at(file, 0, 4096) : std::string();
    if (const std::string_view why = why_not(file, start); !why.empty()) {
      return absl::InvalidArgumentError(
          concat(path, " ", why,
                 ": the stack cannot serve it. Run it without `catena stack run`, link it "
                 "dynamically to libc, or write it with catena/session.h"));
    }
    if (!start.starts_with("#!")) {
      break;
    }
    const std::size_t begin = start.find_first_not_of(" \t", 2);
    path =
        begin == std::string::npos ? std::string() : start.substr(begin, start.find_first_of(" \t\n", begin) - begin);
  }
  return absl::OkStatus();
}

}  // namespace catena::cli
