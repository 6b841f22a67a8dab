// SPDX-License-Identifier: Apache-2.0
// A hostile tenant's NF. Its configuration says what it does at which step:
//   create, compute, finish   hang | spin | die | lie (it sends what the service never asked for)
//   files, search             in which files it looks for a text, each time that it is made and then again and again;
//                             the NF's statistics say what it could read, and in how many of them the text is
// An object whose name contains "hangs-when-loaded" never returns from being loaded.
#include <catena/nf/nf.hpp>

#include <catena/core/text.hpp>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace catena;

constexpr std::array<nf::ConfigKey, 6> kConfig{{
    {"create", "nothing | hang | spin | die | lie", "nothing", "what it does when it is made"},
    {"compute", "as `create`", "nothing", "when packets come"},
    {"finish", "as `create`", "nothing", "after the last packet"},
    {"files", "list of files", "none", "files to search"},
    {"search", "text", "none", "what it searches them for"},
    {"statistics", "nothing | change | misname", "nothing", "what it does with the names of its statistics"},
}};

void hang() {
  while (true) {
    ::pause();
  }
}

void spin() {
  for (std::atomic<std::uint64_t> turns{0};; ++turns) {
  }
}

/// A frame (nf_process/protocol.hpp) of a call that no NF's process may send, without a body.
void lie() {
  constexpr int kControl = 3;
  const std::array<std::uint32_t, 2> frame = {0xdead, 0};
  static_cast<void>(::write(kControl, frame.data(), sizeof frame));
  hang();
}

void do_as_told(std::string_view what) {
  if (what == "hang") {
    hang();
  } else if (what == "spin") {
    spin();
  } else if (what == "die") {
    __builtin_trap();
  } else if (what == "lie") {
    lie();
  }
}

__attribute__((constructor)) void hang_when_loaded() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&hang_when_loaded), &info) != 0 && info.dli_fname != nullptr &&
      std::string_view(info.dli_fname).find("hangs-when-loaded") != std::string_view::npos) {
    hang();
  }
}

/// What a search of files found.
struct Found {
  std::uint64_t readable = 0;  ///< files
  std::uint64_t bytes = 0;     ///< of the largest
  std::uint64_t with_text = 0;
};

/// The file is read in parts that overlap, up to a bound: some files have no end.
bool has_text(std::string const& path, std::string const& text) {
  constexpr std::size_t kPart = std::size_t{1} << 20U;
  constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;
  std::ifstream file(path, std::ios::binary);
  std::string part;
  for (std::size_t done = 0; file && done < kMaxBytes; done += kPart) {
    const std::size_t kept = std::min(part.size(), text.size());
    part.erase(0, part.size() - kept);
    part.resize(kept + kPart);
    file.read(part.data() + kept, kPart);
    part.resize(kept + static_cast<std::size_t>(file.gcount()));
    if (part.find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

Found search(std::vector<std::string> const& files, std::string const& text) {
  Found found;
  for (std::string const& path : files) {
    struct stat status {};
    if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &status) != 0) {
      continue;
    }
    ++found.readable;
    found.bytes = std::max(found.bytes, static_cast<std::uint64_t>(status.st_size));
    found.with_text += has_text(path, text) ? 1 : 0;
  }
  return found;
}

class Hostile final : public nf::Nf {
 public:
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config) {
    auto nf = std::make_unique<Hostile>();
    CATENA_ASSIGN_OR_RETURN(const std::string at_once, config.string_or("create", "nothing"));
    CATENA_ASSIGN_OR_RETURN(nf->compute_, config.string_or("compute", "nothing"));
    CATENA_ASSIGN_OR_RETURN(nf->finish_, config.string_or("finish", "nothing"));
    CATENA_ASSIGN_OR_RETURN(nf->text_, config.string_or("search", ""));
    if (config.has("files")) {
      CATENA_ASSIGN_OR_RETURN(nf->files_, config.strings("files"));
    }
    CATENA_ASSIGN_OR_RETURN(nf->statistics_, config.string_or("statistics", "nothing"));
    CATENA_RETURN_IF_ERROR(config.finish());
    do_as_told(at_once);
    nf->found_ = search(nf->files_, nf->text_);
    return nf;
  }

  nf::Hints hints() const override { return {.cr = packet::fields(packet::kIpv4Ttl)}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {
    constexpr std::chrono::milliseconds kPause{200};
    do_as_told(compute_);
    if (!files_.empty() && Clock::now() - searched_ > kPause) {
      found_ = search(files_, text_);
      searched_ = Clock::now();
    }
  }
  Status finish() override {
    do_as_told(finish_);
    return absl::OkStatus();
  }
  std::vector<nf::Statistic> statistics() const override {
    if (statistics_ == "change") {
      return changing_statistics();
    }
    if (statistics_ == "misname") {
      return {{"Files {x=\"1\"}", 1}};
    }
    return {{"readable_files", found_.readable},
            {"largest_file_bytes", found_.bytes},
            {"files_with_text", found_.with_text}};
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// One name of always, and a hundred others each time.
  std::vector<nf::Statistic> changing_statistics() const {
    constexpr std::uint64_t kOthers = 100;
    std::vector<nf::Statistic> statistics{{"calls", ++calls_}};
    for (std::uint64_t i = 0; i < kOthers; ++i) {
      statistics.push_back({"other_" + std::to_string(calls_ * kOthers + i), 1});
    }
    return statistics;
  }

  std::string compute_;
  std::string finish_;
  std::string text_;
  std::string statistics_;
  mutable std::uint64_t calls_ = 0;
  std::vector<std::string> files_;
  Found found_;
  Clock::time_point searched_;
};

}  // namespace

catena::nf::Descriptor const& catena_nf_hostile() {
  static constexpr nf::Descriptor kDescriptor{
      .type = "hostile",
      .help = "Does what no NF should do",
      .drop_reasons = {},
      .config = kConfig,
      .sharding = nf::Sharding::kPacket,
      .create = &Hostile::create,
  };
  return kDescriptor;
}
