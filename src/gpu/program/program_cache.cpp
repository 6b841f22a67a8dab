// SPDX-License-Identifier: Apache-2.0
#include "gpu/program/program_cache.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace catena::program {

namespace {

constexpr std::string_view kSuffix = ".program";
constexpr std::string_view kNew = "new-";
constexpr std::uint64_t kMagic = 0x314D474F52504143ULL;  // "CAPROGM1", little endian
constexpr std::uint64_t kMaxFileBytes = ProgramCache::kMaxBytes;

/// Before the program's bytes in each file.
struct Header {
  std::uint64_t magic;
  std::uint64_t key_high;
  std::uint64_t key_low;
  std::uint64_t bytes;
  std::uint64_t checksum;
};
static_assert(sizeof(Header) == 40);

std::uint64_t checksum(device::Binary const& binary) { return device::Hash128().add(binary).low(); }

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File const&) = delete;
  File& operator=(File const&) = delete;
  ~File() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  int get() const { return descriptor_; }

  bool read(void* target, std::size_t bytes) const {
    auto* at = static_cast<char*>(target);
    while (bytes > 0) {
      const ssize_t got = ::read(descriptor_, at, bytes);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return false;
      }
      at += got;
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }
  bool write(const void* source, std::size_t bytes) const {
    const auto* at = static_cast<const char*>(source);
    while (bytes > 0) {
      const ssize_t put = ::write(descriptor_, at, bytes);
      if (put < 0 && errno == EINTR) {
        continue;
      }
      if (put <= 0) {
        return false;
      }
      at += put;
      bytes -= static_cast<std::size_t>(put);
    }
    return true;
  }

 private:
  int descriptor_;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

ProgramCache ProgramCache::from_environment() {
  if (const std::string own = environment("CATENA_CACHE_DIR"); !own.empty()) {
    return ProgramCache(own);
  }
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) {
    return ProgramCache(std::filesystem::path(xdg) / "catena");
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    return ProgramCache(std::filesystem::path(home) / ".cache" / "catena");
  }
  return ProgramCache({});
}

std::filesystem::path ProgramCache::file_of(device::Hash128 const& key) const {
  return folder_ / (key.hex() + std::string(kSuffix));
}

std::optional<device::Binary> ProgramCache::find(device::Hash128 const& key) const {
  if (folder_.empty()) {
    return std::nullopt;
  }
  const std::filesystem::path path = file_of(key);
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    return std::nullopt;
  }
  // A program is code that runs with our rights: what another user put into a shared folder is not taken.
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    spdlog::warn("program cache: '{}' is not a file of this user and is not used", path.string());
    return std::nullopt;
  }
  Header header{};
  if (file.read(&header, sizeof header) && header.magic == kMagic && header.key_high == key.high() &&
      header.key_low == key.low() && header.bytes <= kMaxFileBytes) {
    device::Binary binary(header.bytes);
    if (file.read(binary.data(), binary.size()) && checksum(binary) == header.checksum) {
      return binary;
    }
  }
  spdlog::warn("program cache: '{}' is damaged; the program is recompiled", path.string());
  return std::nullopt;
}

void ProgramCache::store(device::Hash128 const& key, device::Binary const& binary) const {
  if (folder_.empty()) {
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(folder_.parent_path().parent_path(), error);
  ::mkdir(folder_.parent_path().c_str(), 0700);
  ::mkdir(folder_.c_str(), 0700);
  std::string temporary = (folder_ / concat(kNew, "XXXXXX")).string();
  const File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) {
    spdlog::info("program cache: '{}' cannot be written ({}); programs are compiled at each start", folder_.string(),
                 std::strerror(errno));
    return;
  }
  const Header header{kMagic, key.high(), key.low(), binary.size(), checksum(binary)};
  const bool whole = file.write(&header, sizeof header) && file.write(binary.data(), binary.size());
  if (!whole || ::rename(temporary.c_str(), file_of(key).c_str()) != 0) {
    spdlog::info("program cache: '{}' cannot be written ({})", folder_.string(), std::strerror(errno));
    ::unlink(temporary.c_str());
    return;
  }
  prune();
}

void ProgramCache::prune() const {
  struct Entry {
    std::filesystem::file_time_type written;
    std::uint64_t bytes;
    std::filesystem::path path;
  };
  std::vector<Entry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    const auto written = at->last_write_time(unreadable);
    const auto bytes = unreadable ? 0 : at->file_size(unreadable);
    // a file under its temporary name may be what a process that was killed left behind
    if (!unreadable && (at->path().extension() == kSuffix || at->path().filename().string().starts_with(kNew))) {
      entries.push_back({written, bytes, at->path()});
    }
  }
  std::ranges::sort(entries, std::ranges::greater(), &Entry::written);
  std::size_t programs = 0;
  std::uint64_t bytes = 0;
  for (Entry const& entry : entries) {
    bytes += entry.bytes;
    if (++programs > kMaxPrograms || bytes > kMaxBytes) {
      std::filesystem::remove(entry.path, error);
    }
  }
}

}  // namespace catena::program
