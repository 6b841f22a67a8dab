// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/lines.hpp"

#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

namespace catena::nf_process {
namespace {

enum class Kind : std::uint32_t { kEndOfUnit, kRecord, kAlert };

/// In front of a line's text.
struct LineHead {
  Kind kind;
  std::uint32_t bytes;
  std::uint64_t packet;
  std::int32_t reason;
  std::uint16_t verdict;
  std::uint16_t nf;
};

struct Parts {
  LineHead head;
  std::string_view text;
};

Parts parts_of(Line const& line) {
  if (auto const* record = std::get_if<RecordOf>(&line)) {
    nf::RecordLine const& of = record->line;
    return {{Kind::kRecord, static_cast<std::uint32_t>(of.fields.size()), of.packet, of.reason,
             static_cast<std::uint16_t>(of.verdict), static_cast<std::uint16_t>(record->nf)},
            of.fields};
  }
  if (auto const* alert = std::get_if<AlertOf>(&line)) {
    nf::AlertLine const& of = alert->line;
    return {{Kind::kAlert, static_cast<std::uint32_t>(of.alert.size()), of.packet, 0, 0,
             static_cast<std::uint16_t>(alert->nf)},
            of.alert};
  }
  return {{Kind::kEndOfUnit, 0, 0, 0, 0, 0}, {}};
}

/// `bytes` from or to the ring, whose end is followed by its beginning.
template <typename Copy>
void walk(std::span<std::byte> ring, std::uint64_t at, std::size_t bytes, Copy copy) {
  const std::size_t begin = at & (ring.size() - 1);
  const std::size_t first = std::min(bytes, ring.size() - begin);
  for (const auto& [place, offset, part] :
       {std::tuple(ring.data() + begin, std::size_t{0}, first), std::tuple(ring.data(), first, bytes - first)}) {
    if (part > 0) {  // an empty text may have no memory
      copy(place, offset, part);
    }
  }
}

/// On one line, and no more than JSON.
std::optional<nlohmann::json> object_of(std::string_view text) {
  if (std::ranges::any_of(text, [](unsigned char c) { return c < ' '; })) {
    return std::nullopt;
  }
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_object() ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace

Result<bool> LineWriter::write(Line const& line) {
  const auto [head, text] = parts_of(line);
  if (text.size() > kMaxLineBytes) {
    return absl::InvalidArgumentError(
        concat("a line about a packet has ", text.size(), " bytes; ", kMaxLineBytes, " is the most"));
  }
  const std::uint64_t pushed = head_->pushed.load(std::memory_order_relaxed);
  const std::size_t bytes = sizeof head + text.size();
  if (pushed + bytes - head_->taken.load(std::memory_order_acquire) > ring_.size()) {
    return false;
  }
  const auto put = [this](std::uint64_t at, void const* from, std::size_t count) {
    walk(ring_, at, count, [from](std::byte* to, std::size_t offset, std::size_t part) {
      std::memcpy(to, static_cast<std::byte const*>(from) + offset, part);
    });
  };
  put(pushed, &head, sizeof head);
  put(pushed + sizeof head, text.data(), text.size());
  head_->pushed.store(pushed + bytes, std::memory_order_release);
  return true;
}

Result<std::optional<Line>> LineReader::next() {
  const std::uint64_t there = head_->pushed.load(std::memory_order_acquire) - taken_;
  if (there == 0) {
    return std::nullopt;
  }
  LineHead head{};
  const auto get = [this](std::uint64_t at, void* to, std::size_t count) {
    walk(ring_, at, count, [to](std::byte const* from, std::size_t offset, std::size_t part) {
      std::memcpy(static_cast<std::byte*>(to) + offset, from, part);
    });
  };
  if (there > ring_.size() || there < sizeof head) {
    return absl::DataLossError("it claims an impossible amount of lines");
  }
  get(taken_, &head, sizeof head);
  if (head.bytes > kMaxLineBytes || there < sizeof head + head.bytes) {
    return absl::DataLossError(concat("it claims a line of ", head.bytes, " bytes"));
  }
  std::string text(head.bytes, '\0');
  get(taken_ + sizeof head, text.data(), text.size());
  taken_ += sizeof head + text.size();
  head_->taken.store(taken_, std::memory_order_release);
  switch (head.kind) {
    case Kind::kEndOfUnit:
      return Line(EndOfUnit{});
    case Kind::kRecord:
      if (head.verdict > static_cast<std::uint16_t>(packet::Verdict::kReply) || !are_record_fields(text)) {
        break;
      }
      return Line(
          RecordOf{head.nf, {head.packet, static_cast<packet::Verdict>(head.verdict), head.reason, std::move(text)}});
    case Kind::kAlert:
      if (!is_alert(text)) {
        break;
      }
      return Line(AlertOf{head.nf, {head.packet, std::move(text)}});
  }
  return absl::DataLossError("a line about a packet is invalid");
}

bool are_record_fields(std::string_view fields) {
  if (fields.empty()) {
    return true;
  }
  const std::optional<nlohmann::json> members = object_of(concat("{", fields, "}"));
  constexpr std::array kOwn{"packet", "ts", "src", "dst", "proto", "sport", "dport", "nf", "verdict", "reason"};
  return members && !members->empty() &&
         std::ranges::none_of(kOwn, [&members](const char* name) { return members->contains(name); });
}

bool is_alert(std::string_view alert) { return object_of(alert).has_value(); }

}  // namespace catena::nf_process
