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

/// Lines about packets (`--record` and `--eve`), sent by the NFs of a process beside its units, in a byte ring of the
/// channel's memory. The lines of a unit, followed by an EndOfUnit, precede the unit.
namespace catena::nf_process {

/// Maximum size of a line. The writer of the file adds the rest of an EVE event or a record.
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

/// Shared state before the ring.
struct alignas(64) LineRingHead {
  std::atomic<std::uint64_t> pushed;             ///< bytes since the start
  alignas(64) std::atomic<std::uint64_t> taken;  ///< of these
};

/// The NF's end. One thread.
class LineWriter {
 public:
  LineWriter(LineRingHead& head, std::span<std::byte> ring) : head_(&head), ring_(ring) {}
  /// False if the ring has too little free space. InvalidArgument for a line longer than kMaxLineBytes.
  Result<bool> write(Line const& line);

 private:
  LineRingHead* head_;
  std::span<std::byte> ring_;
};

/// The parent's end, which trusts no input. One thread.
class LineReader {
 public:
  LineReader(LineRingHead& head, std::span<std::byte> ring) : head_(&head), ring_(ring) {}
  /// A copy of the next line; nullopt if the ring is empty. DataLoss if the content is not a line.
  Result<std::optional<Line>> next();

 private:
  LineRingHead* head_;
  std::span<std::byte> ring_;
  std::uint64_t taken_ = 0;
};

/// Whether `fields` can be put into a record: empty, or JSON members on one line without the framework's own names.
bool are_record_fields(std::string_view fields);
/// Whether `alert` can be put into an EVE event: a JSON object on one line.
bool is_alert(std::string_view alert);

}  // namespace catena::nf_process
