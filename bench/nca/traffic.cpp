// SPDX-License-Identifier: Apache-2.0
#include "bench/nca/traffic.hpp"

#include <catena/core/text.hpp>

#include <hs.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

namespace catena::bench {
namespace {

constexpr std::uint64_t kSeed = 583;
constexpr std::uint32_t kPercent = 100;
/// A string of four bytes is in 40 MB of random bytes once in a hundred times; another draw mends it.
constexpr int kDraws = 8;

std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> key(nca_match const& match) {
  return {match.packet, match.end, match.pattern};
}

const char* text_of(nca_packet const& packet) { return static_cast<const char*>(packet.data); }

Status failed(hs_error_t error) { return absl::InternalError(concat("hs_scan() failed with code ", error)); }

void randomize(std::mt19937_64& random, std::span<std::uint8_t> bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t word = random();
    const std::size_t count = std::min(sizeof word, bytes.size() - at);
    std::memcpy(bytes.data() + at, &word, count);
    at += count;
  }
}

/// A string that fits into `bytes` bytes.
Result<std::uint32_t> draw_string(std::mt19937_64& random, std::span<const std::string> strings, std::uint32_t bytes) {
  const std::size_t start = random() % strings.size();
  for (std::size_t i = 0; i < strings.size(); ++i) {
    const std::size_t number = (start + i) % strings.size();
    if (strings[number].size() <= bytes) {
      return static_cast<std::uint32_t>(number);
    }
  }
  return absl::InvalidArgumentError(concat("no string fits into a packet of ", bytes, " bytes"));
}

/// Where the matches of each packet begin.
std::vector<std::uint32_t> firsts_of(std::vector<nca_match> const& matches, std::size_t packets) {
  std::vector<std::uint32_t> first(packets + 1);
  for (nca_match const& match : matches) {
    ++first[match.packet + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

}  // namespace

void Hyperscan::Free::operator()(hs_database* database) const { hs_free_database(database); }
void Hyperscan::Free::operator()(hs_scratch* scratch) const { hs_free_scratch(scratch); }

Result<Hyperscan> Hyperscan::create(std::span<const std::string> strings) {
  if (hs_valid_platform() != HS_SUCCESS) {
    return absl::UnavailableError("this processor lacks what Hyperscan needs (SSSE3)");
  }
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  std::vector<unsigned> ids(strings.size());
  std::iota(ids.begin(), ids.end(), 0U);
  for (std::string const& string : strings) {
    texts.push_back(string.data());
    lengths.push_back(string.size());
  }
  const std::vector<unsigned> flags(strings.size(), 0);
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile_lit_multi(texts.data(), flags.data(), ids.data(), lengths.data(),
                           static_cast<unsigned>(strings.size()), HS_MODE_BLOCK, nullptr, &database,
                           &error) != HS_SUCCESS) {
    const Status status = absl::InvalidArgumentError(concat("Hyperscan refuses the strings: ", error->message));
    hs_free_compile_error(error);
    return status;
  }
  Hyperscan result;
  result.database_.reset(database);
  hs_scratch_t* scratch = nullptr;
  if (hs_alloc_scratch(database, &scratch) != HS_SUCCESS) {
    return absl::InternalError("Hyperscan has no scratch memory");
  }
  result.scratch_.reset(scratch);
  return result;
}

Result<std::vector<nca_match>> Hyperscan::scan(std::span<const nca_packet> packets) const {
  std::vector<nca_match> matches;
  std::pair<std::vector<nca_match>*, std::uint32_t> state{&matches, 0};
  for (; state.second < packets.size(); ++state.second) {
    nca_packet const& packet = packets[state.second];
    const auto on_match = [](unsigned id, unsigned long long /*from*/, unsigned long long end, unsigned /*flags*/,
                             void* context) {
      auto& [list, number] = *static_cast<decltype(state)*>(context);
      list->push_back({number, static_cast<std::uint32_t>(end), id});
      return 0;
    };
    if (const hs_error_t error =
            hs_scan(database_.get(), text_of(packet), packet.length, 0, scratch_.get(), on_match, &state);
        error != HS_SUCCESS) {
      return failed(error);
    }
  }
  std::sort(matches.begin(), matches.end(), [](auto const& a, auto const& b) { return key(a) < key(b); });
  matches.erase(
      std::unique(matches.begin(), matches.end(), [](auto const& a, auto const& b) { return key(a) == key(b); }),
      matches.end());
  return matches;
}

/// In the calling thread, from packet `first` on.
Result<double> Hyperscan::bytes_per_s_of_one(std::span<const nca_packet> packets, std::size_t first,
                                             double seconds) const {
  using Clock = std::chrono::steady_clock;
  hs_scratch_t* own = nullptr;
  if (hs_clone_scratch(scratch_.get(), &own) != HS_SUCCESS) {
    return absl::InternalError("Hyperscan has no scratch memory");
  }
  const std::unique_ptr<hs_scratch, Free> scratch(own);
  const Clock::time_point start = Clock::now();
  std::uint64_t bytes = 0;
  std::uint64_t found = 0;
  std::chrono::duration<double> passed{};
  do {
    for (std::size_t i = 0; i < packets.size(); ++i) {
      nca_packet const& packet = packets[(first + i) % packets.size()];
      const auto on_match = [](unsigned, unsigned long long, unsigned long long, unsigned, void* context) {
        ++*static_cast<std::uint64_t*>(context);
        return 0;
      };
      if (const hs_error_t error = hs_scan(database_.get(), text_of(packet), packet.length, 0, own, on_match, &found);
          error != HS_SUCCESS) {
        return failed(error);
      }
      bytes += packet.length;
    }
    passed = Clock::now() - start;
  } while (passed.count() < seconds);
  return static_cast<double>(bytes) / passed.count();
}

Result<double> Hyperscan::bytes_per_s(std::span<const nca_packet> packets, double seconds,
                                      std::uint32_t threads) const {
  std::vector<std::future<Result<double>>> speeds;
  for (std::uint32_t i = 0; i < threads; ++i) {
    speeds.push_back(std::async(std::launch::async, [&, first = packets.size() / threads * i] {
      return bytes_per_s_of_one(packets, first, seconds);
    }));
  }
  Result<double> sum = 0;
  for (std::future<Result<double>>& speed : speeds) {
    const Result<double> one = speed.get();
    sum = !sum.ok() ? sum : one.ok() ? Result<double>(*sum + *one) : one;
  }
  return sum;
}

Result<Traffic> make_traffic(TrafficSpec const& spec, std::span<const std::string> strings,
                             Hyperscan const& hyperscan) {
  std::mt19937_64 random(kSeed);
  Traffic traffic;
  std::size_t total = 0;
  for (std::uint32_t i = 0; i < spec.packets; ++i) {
    const auto variable = static_cast<std::uint32_t>(kLeastBytes + random() % (kMaxBytes - kLeastBytes + 1));
    const std::uint32_t length = spec.bytes == 0 ? variable : spec.bytes;
    traffic.packets.push_back({nullptr, i, length, 0});
    total += length;
  }
  traffic.bytes.resize(total);
  std::size_t at = 0;
  for (nca_packet& packet : traffic.packets) {
    packet.data = traffic.bytes.data() + at;
    at += packet.length;
  }
  const auto bytes_of = [&](std::uint32_t number) {
    nca_packet const& packet = traffic.packets[number];
    const auto begin = static_cast<std::size_t>(static_cast<const std::uint8_t*>(packet.data) - traffic.bytes.data());
    return std::span(traffic.bytes).subspan(begin, packet.length);
  };
  randomize(random, traffic.bytes);
  for (int draw = 0; draw < kDraws; ++draw) {
    CATENA_ASSIGN_OR_RETURN(traffic.matches, hyperscan.scan(traffic.packets));
    for (nca_match const& match : traffic.matches) {
      randomize(random, bytes_of(match.packet));
    }
    if (traffic.matches.empty()) {
      break;
    }
  }
  if (!traffic.matches.empty()) {
    return absl::InternalError("random bytes hold strings each time");
  }

  std::vector<std::uint32_t> order(spec.packets);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  const std::size_t matching = (std::size_t{spec.packets} * spec.matching_percent + kPercent / 2) / kPercent;
  std::vector<nca_match> planted;
  for (const std::uint32_t number : std::span(order).first(matching)) {
    const std::span<std::uint8_t> packet = bytes_of(number);
    CATENA_ASSIGN_OR_RETURN(const std::uint32_t chosen,
                            draw_string(random, strings, static_cast<std::uint32_t>(packet.size())));
    std::string const& string = strings[chosen];
    const std::size_t offset = random() % (packet.size() - string.size() + 1);
    std::memcpy(packet.data() + offset, string.data(), string.size());
    planted.push_back({number, static_cast<std::uint32_t>(offset + string.size()), chosen});
  }
  CATENA_ASSIGN_OR_RETURN(traffic.matches, hyperscan.scan(traffic.packets));
  traffic.first = firsts_of(traffic.matches, spec.packets);

  std::size_t packets_found = 0;
  for (std::uint32_t i = 0; i < spec.packets; ++i) {
    packets_found += traffic.first[i] < traffic.first[i + 1] ? 1 : 0;
  }
  const bool all_there = std::all_of(planted.begin(), planted.end(), [&](nca_match const& match) {
    return std::binary_search(traffic.matches.begin(), traffic.matches.end(), match,
                              [](auto const& a, auto const& b) { return key(a) < key(b); });
  });
  if (!all_there || packets_found != planted.size()) {
    return absl::InternalError(concat("Hyperscan finds strings in ", packets_found, " packets; ", planted.size(),
                                      " got one, and ", all_there ? "all" : "not all", " of these are found"));
  }
  return traffic;
}

Result<std::vector<std::string>> read_strings(std::string const& path, std::size_t count) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(concat("cannot read ", path, "; give the folder bench/nca of the source tree"));
  }
  std::vector<std::string> strings;
  for (std::string line; strings.size() < count && std::getline(file, line) && !line.empty();) {
    strings.push_back(std::move(line));
  }
  if (strings.size() < count) {
    return absl::InvalidArgumentError(
        concat(path, ":", strings.size() + 1, ": an empty line, or none; ", count, " strings are needed"));
  }
  return strings;
}

}  // namespace catena::bench
