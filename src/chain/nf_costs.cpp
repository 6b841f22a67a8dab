// SPDX-License-Identifier: Apache-2.0
#include "chain/nf_costs.hpp"

#include "base/core/open_file.hpp"
#include "chain/nf_costs_json.hpp"
#include "gpu/device/hash.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>

#include <unistd.h>

namespace catena::chain {
namespace {

constexpr std::size_t kHashDigits = 16;  // no more: a file that is hashed may hold keys
constexpr const char* kHost = "cpu_ns_per_packet";
constexpr const char* kHostAlone = "cpu_alone_ns_per_packet";
constexpr const char* kAfterGpu = "after_gpu_ns_per_packet";

template <typename Measured>
bool is_same(Measured const& one, Measured const& other) {
  return one.nf == other.nf && one.packet_bytes == other.packet_bytes;
}

bool is_same(MeasuredEnds const& one, MeasuredEnds const& other) { return one.packet_bytes == other.packet_bytes; }

template <typename Measured>
void put_last(std::vector<Measured>& all, Measured nf) {
  std::erase_if(all, [&nf](Measured const& entry) { return is_same(entry, nf); });
  all.push_back(std::move(nf));
  if (all.size() > kMaxMeasuredNfs) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kMaxMeasuredNfs));
  }
}

/// Of the smallest packets that are not smaller; null where there are none.
template <typename Measured>
Measured const* smallest_from(std::span<const Measured> all, std::uint32_t packet_bytes, auto is_wanted) {
  Measured const* best = nullptr;
  for (Measured const& entry : all) {
    if (is_wanted(entry) && entry.packet_bytes >= packet_bytes &&
        (best == nullptr || entry.packet_bytes < best->packet_bytes)) {
      best = &entry;
    }
  }
  return best;
}

auto of(NfKey const& nf) {
  return [&nf](auto const& entry) { return entry.nf == nf; };
}

Json to_json(plan::Line const& line, double r_squared) {
  return {{"fixed_ns", line.intercept}, {"per_packet_ns", line.slope}, {"r_squared", r_squared}};
}

void read_line(Json const& json, std::string const& path, std::string_view key, ProfileReader& reader, plan::Line& line,
               double& r_squared) {
  Json const& from = reader.object(json, path, key);
  const std::string own = concat(path, key, ".");
  line.intercept = reader.number(from, own, "fixed_ns");
  line.slope = reader.number(from, own, "per_packet_ns");
  r_squared = reader.number(from, own, "r_squared");
  if (r_squared > 1) {
    reader.complain(own, "r_squared", "is above 1");
  }
}

bool is_hash(std::string_view text) {
  return text.size() == kHashDigits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// What entries of all lists have.
template <typename Measured>
void read_when(Json const& json, std::string const& path, ProfileReader& reader, Measured& entry) {
  entry.packet_bytes = reader.whole(json, path, "packet_bytes", 1, packet::kMaxFrameBytes);
  entry.measured = reader.text(json, path, "measured");
  if (!is_time(entry.measured)) {
    reader.complain(path, "measured", "is not a time like 2026-11-21T18:30:10Z");
  }
}

template <typename Measured>
void read_whose(Json const& json, std::string const& path, ProfileReader& reader, Measured& nf) {
  nf.nf.type = reader.text(json, path, "type");
  nf.nf.configuration = reader.text(json, path, "configuration");
  if (!is_hash(nf.nf.configuration)) {
    reader.complain(path, "configuration", concat("is not ", kHashDigits, " hexadecimal digits"));
  }
  read_when(json, path, reader, nf);
}

template <typename Measured>
Json whose_to_json(Measured const& nf) {
  return {{"type", nf.nf.type},
          {"configuration", nf.nf.configuration},
          {"packet_bytes", nf.packet_bytes},
          {"measured", nf.measured}};
}

/// Of what older profiles do not have, and those that could not be measured.
void read_if_there(Json const& json, std::string const& path, const char* key, ProfileReader& reader, double& value) {
  if (json.contains(key)) {
    value = reader.number(json, path, key);
  }
}
void write_if_known(const char* key, double value, Json& json) {
  if (value > 0) {
    json[key] = value;
  }
}

void read_entry(Json const& json, std::string const& path, ProfileReader& reader, MeasuredNf& nf) {
  read_whose(json, path, reader, nf);
  read_line(json, path, "kernel", reader, nf.cost.kernel, nf.kernel_r_squared);
  read_line(json, path, "transfer", reader, nf.cost.transfer, nf.transfer_r_squared);
  nf.cost.overhead_ns = reader.number(json, path, "overhead_ns");
  nf.cost.max_packets_per_sm =
      reader.whole(json, path, "max_packets_per_sm", 1, std::numeric_limits<std::uint32_t>::max());
  read_if_there(json, path, kHost, reader, nf.cost.cpu_ns_per_packet);
  read_if_there(json, path, kHostAlone, reader, nf.host_alone_ns);
}

void read_entry(Json const& json, std::string const& path, ProfileReader& reader, MeasuredOnCpu& nf) {
  read_whose(json, path, reader, nf);
  nf.ns_per_packet = reader.number(json, path, "ns_per_packet");
  nf.spread_percent = reader.number(json, path, "spread_percent");
  read_if_there(json, path, kAfterGpu, reader, nf.after_gpu_ns);
}

void read_entry(Json const& json, std::string const& path, ProfileReader& reader, MeasuredEnds& ends) {
  read_when(json, path, reader, ends);
  ends.rx_ns_per_packet = reader.number(json, path, "rx_ns_per_packet");
  ends.tx_ns_per_packet = reader.number(json, path, "tx_ns_per_packet");
}

template <typename Measured>
std::vector<Measured> list_from_json(Json const& json, std::string_view key, ProfileReader& reader) {
  std::vector<Measured> all;
  if (!json.is_array() || json.size() > kMaxMeasuredNfs) {
    reader.complain("", key, concat("is no list of at most ", kMaxMeasuredNfs, " entries"));
    return all;
  }
  for (Json const& entry : json) {
    const std::string path = concat(key, "[", all.size(), "]");
    if (!entry.is_object()) {
      reader.complain(path, "", "is no object");
      return all;
    }
    Measured nf;
    read_entry(entry, path + ".", reader, nf);
    if (std::ranges::any_of(all, [&nf](Measured const& other) { return is_same(other, nf); })) {
      reader.complain(path, "", "describes the same NF as another entry");
    }
    all.push_back(std::move(nf));
  }
  return all;
}

/// Reads files for a hash, piece by piece, and no more of them than kMaxHashedBytes.
class FileHasher {
 public:
  /// Adds what is in `file`, as add_field() of it in one piece.
  Status add(nf::NamedFile const& file, device::Hash128& hash);
  /// Puts files of one key into an order that what is in them gives alone, in whichever an NF reads them.
  Status sort(std::vector<nf::NamedFile const*>& files);

 private:
  std::uint64_t left_ = kMaxHashedBytes;
};

Status FileHasher::add(nf::NamedFile const& file, device::Hash128& hash) {
  const auto at = [&file](Status const& status) {
    return Status(absl::IsNotFound(status) ? absl::StatusCode::kUnavailable : status.code(),
                  concat(file.position, ": ", std::string(status.message())));
  };
  const Result<OpenedFile> opened = open_to_read(file.path, kRegularFile);
  if (!opened.ok()) {
    return at(opened.status());
  }
  // the length comes first, and the system does not know that of each file
  auto size = static_cast<std::uint64_t>(opened->status.st_size);
  for (int tries = 0; tries < 2; ++tries) {
    std::uint64_t bytes = 0;
    device::Hash128 hashed = hash;
    hashed.add(std::as_bytes(std::span(&size, 1)));
    const Status read = read_pieces(*opened, file.path, left_, [&](std::span<const std::byte> piece) {
      bytes += piece.size();
      hashed.add(piece);
    });
    if (!read.ok()) {
      return at(read);
    }
    left_ -= bytes;
    if (bytes == size) {
      hash = hashed;
      return absl::OkStatus();
    }
    size = bytes;
    ::lseek(opened->fd.get(), 0, SEEK_SET);
  }
  return at(absl::UnavailableError(concat(file.path, ": changes while it is read")));
}

Status FileHasher::sort(std::vector<nf::NamedFile const*>& files) {
  std::vector<std::pair<std::string, nf::NamedFile const*>> hashed;
  for (nf::NamedFile const* file : files) {
    device::Hash128 hash;
    CATENA_RETURN_IF_ERROR(add(*file, hash));
    hashed.emplace_back(hash.hex(), file);
  }
  std::ranges::stable_sort(hashed, {}, &std::pair<std::string, nf::NamedFile const*>::first);
  std::ranges::transform(hashed, files.begin(), &std::pair<std::string, nf::NamedFile const*>::second);
  return absl::OkStatus();
}

}  // namespace

Result<NfKey> key_of(NfConfig const& config, std::span<const nf::NamedFile> files) {
  std::map<std::string, std::vector<nf::NamedFile const*>> by_key;
  for (nf::NamedFile const& file : files) {
    std::error_code error;
    // what comes out of a pipe is gone
    if (!file.is_written && std::filesystem::is_regular_file(file.path, error)) {
      by_key[file.key].push_back(&file);
    }
  }
  FileHasher hasher;
  device::Hash128 hash;
  hash.add_field(config.type).add_field(config.config.canonical());
  for (auto& [key, named] : by_key) {
    CATENA_RETURN_IF_ERROR(named.size() > 1 ? hasher.sort(named) : absl::OkStatus());
    for (nf::NamedFile const* file : named) {
      hash.add_field(key);
      CATENA_RETURN_IF_ERROR(hasher.add(*file, hash));
    }
  }
  return NfKey{config.type, hash.hex().substr(0, kHashDigits)};
}

Result<NfKey> key_of_unmade(NfConfig const& config, std::span<const nf::NamedFile> known) {
  std::vector<nf::NamedFile> files;
  for (auto const& named : config.config.files()) {
    std::string const& path = named.second;
    const bool is_written = std::ranges::any_of(known, [&path](nf::NamedFile const& file) {
      std::error_code error;
      return file.is_written && std::filesystem::absolute(file.path, error).lexically_normal() == path;
    });
    files.push_back({named.first, path, config.position, is_written});
  }
  return key_of(config, files);
}

void keep(std::vector<MeasuredNf>& all, MeasuredNf nf) { put_last(all, std::move(nf)); }
void keep(std::vector<MeasuredOnCpu>& all, MeasuredOnCpu nf) { put_last(all, std::move(nf)); }
void keep(std::vector<MeasuredEnds>& all, MeasuredEnds ends) { put_last(all, std::move(ends)); }

MeasuredNf const* find(std::span<const MeasuredNf> all, NfKey const& nf, std::uint32_t packet_bytes) {
  return smallest_from(all, packet_bytes, of(nf));
}

MeasuredOnCpu const* find(std::span<const MeasuredOnCpu> all, NfKey const& nf, std::uint32_t packet_bytes) {
  return smallest_from(all, packet_bytes, of(nf));
}

MeasuredEnds const* find(std::span<const MeasuredEnds> all, std::uint32_t packet_bytes) {
  return smallest_from(all, packet_bytes, [](MeasuredEnds const& /*entry*/) { return true; });
}

Json nfs_to_json(std::span<const MeasuredNf> all) {
  Json list = Json::array();
  for (MeasuredNf const& nf : all) {
    Json entry = whose_to_json(nf);
    entry["kernel"] = to_json(nf.cost.kernel, nf.kernel_r_squared);
    entry["transfer"] = to_json(nf.cost.transfer, nf.transfer_r_squared);
    entry["overhead_ns"] = nf.cost.overhead_ns;
    entry["max_packets_per_sm"] = nf.cost.max_packets_per_sm;
    entry[kHost] = nf.cost.cpu_ns_per_packet;
    write_if_known(kHostAlone, nf.host_alone_ns, entry);
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<MeasuredNf> nfs_from_json(Json const& json, ProfileReader& reader) {
  return list_from_json<MeasuredNf>(json, "nfs", reader);
}

Json nfs_on_cpu_to_json(std::span<const MeasuredOnCpu> all) {
  Json list = Json::array();
  for (MeasuredOnCpu const& nf : all) {
    Json entry = whose_to_json(nf);
    entry["ns_per_packet"] = nf.ns_per_packet;
    entry["spread_percent"] = nf.spread_percent;
    write_if_known(kAfterGpu, nf.after_gpu_ns, entry);
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<MeasuredOnCpu> nfs_on_cpu_from_json(Json const& json, ProfileReader& reader) {
  return list_from_json<MeasuredOnCpu>(json, "nfs_on_cpu", reader);
}

Json ends_to_json(std::span<const MeasuredEnds> all) {
  Json list = Json::array();
  for (MeasuredEnds const& ends : all) {
    list.push_back({{"packet_bytes", ends.packet_bytes},
                    {"measured", ends.measured},
                    {"rx_ns_per_packet", ends.rx_ns_per_packet},
                    {"tx_ns_per_packet", ends.tx_ns_per_packet}});
  }
  return list;
}

std::vector<MeasuredEnds> ends_from_json(Json const& json, ProfileReader& reader) {
  return list_from_json<MeasuredEnds>(json, "ends", reader);
}

}  // namespace catena::chain
