// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/alert.hpp>
#include <catena/nf/outcome.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

/// The lines about packets (`--record` and `--eve`) that NFs of a process give beside its units: a ring of bytes in the
/// channel's memory. Those of a unit come before it, and behind them its end.
namespace catena::nf_process {

/// Of one line; the rest of an EVE event or of a record is added by who writes it.
inline constexpr std::uint32_t kMaxLineBytes = 64U << 10;
/// Bytes of the ring, a power of two.
inline constexpr std::size_t kLineRingBytes = std::size_t{1} << 20;

struct EndOfUnit {};
/// A line of NF number `nf` of the process.
struct RecordOf {
  std::uint32_t nf;
  nf::RecordLine line;
};
struct AlertOf {
  std::uint32_t nf;
  nf::AlertLine line;
};
using Line = std::variant<EndOfUnit, RecordOf, AlertOf>;

/// What both ends share in front of the ring.
struct alignas(64) LineRingHead {
  std::atomic<std::uint64_t> pushed;             ///< bytes since the beginning
  alignas(64) std::atomic<std::uint64_t> taken;  ///< of them
};

/// The NF's end. One thread.
class LineWriter {
 public:
  LineWriter(LineRingHead& head, std::span<std::byte> ring) : head_(&head), ring_(ring) {}
  /// False: there is no room now. InvalidArgument for a line longer than kMaxLineBytes.
  Result<bool> write(Line const& line);

 private:
  LineRingHead* head_;
  std::span<std::byte> ring_;
};

/// The other one, which believes nothing. One thread.
class LineReader {
 public:
  LineReader(LineRingHead& head, std::span<std::byte> ring) : head_(&head), ring_(ring) {}
  /// The next line, copied out; none: there is none now. DataLoss where what is there is no line.
  Result<std::optional<Line>> next();

 private:
  LineRingHead* head_;
  std::span<std::byte> ring_;
  std::uint64_t taken_ = 0;
};

/// Whether `fields` can be put into a record: nothing, or JSON members on one line, none of which is the framework's
/// own.
bool are_record_fields(std::string_view fields);
/// Whether `alert` can be put into an EVE event: a JSON object on one line.
bool is_alert(std::string_view alert);

}  // namespace catena::nf_process
