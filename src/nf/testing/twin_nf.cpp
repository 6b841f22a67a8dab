// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/twin_nf.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "nf/instance.hpp"

namespace catena::nf::testing {
namespace {

using packet::FieldSet;

/// The framework itself reads these before each NF, so they are valid on every plan.
constexpr FieldSet kReadByAll =
    packet::fields(packet::kMetaVerdict, packet::kMetaLength, packet::kMetaOffset, packet::kMetaLayers);
constexpr FieldSet kFrameBounds = packet::fields(packet::kMetaLength, packet::kMetaOffset);
constexpr std::uint8_t kReply = static_cast<std::uint8_t>(packet::Verdict::kReply);
constexpr std::uint32_t kPoisons = 4;
/// Spreads slot numbers (Knuth), so that frames that come again and again do not get the same poison each time.
constexpr std::uint32_t kScatter = 2654435761U;

FieldSet reads(Hints const& hints, Step step) {
  switch (step) {
    case Step::kCompute:
      return hints.cr;
    case Step::kComplete:
      return hints.complete_reads;
    default:
      return hints.prepare_reads;
  }
}

FieldSet writes(Hints const& hints, Step step) {
  switch (step) {
    case Step::kCompute:
      return hints.cw;
    case Step::kComplete:
      return hints.complete_writes;
    default:
      return hints.prepare_writes;
  }
}

bool names(FieldSet set, std::uint32_t part) {
  return part < packet::kFieldCount ? (set >> part & 1U) != 0 : part == kUnnamed && packet::has_frame(set);
}
bool may_read(FieldSet reads, std::uint32_t part) { return part == kMark || names(reads | kReadByAll, part); }
/// Verdicts are given through Outcome, without a hint.
bool may_write(FieldSet writes, std::uint32_t part) {
  return part == kMark || names(writes | packet::fields(packet::kMetaVerdict), part);
}

std::vector<Part> parts_in(Step step, PacketImage const& image) {
  // after work that moved the frame its headers are where parsing it again finds them, which complete() does
  return parts_of(
      image, step == Step::kComplete ? packet::parse(image.slot.data() + image.offset, image.length) : image.layers);
}

/// Zeros, ones, all bits inverted, or bytes that are not what they were; the same ones for the same seed.
void overwrite(std::span<std::uint8_t> bytes, std::uint32_t poison, std::uint32_t seed) {
  switch (poison) {
    case 0:
    case 1:
      std::memset(bytes.data(), poison == 0 ? 0x00 : 0xFF, bytes.size());
      return;
    case 2:
      std::transform(bytes.begin(), bytes.end(), bytes.begin(), std::bit_not());
      return;
    default: {
      std::minstd_rand random(seed);
      for (std::uint8_t& byte : bytes) {
        byte = static_cast<std::uint8_t>(byte + 1 + random() % 255);
      }
    }
  }
}

std::string_view name_of(std::uint8_t verdict) {
  constexpr std::string_view kNames[] = {"pass", "alert", "drop", "reply"};
  return verdict < std::size(kNames) ? kNames[verdict] : "unknown";
}

std::string text_of(packet::Packet const& packet, PacketImage const& before) {
  const unsigned flags = before.layers.flags;
  const std::string_view kind = (flags & packet::kTcp) != 0    ? "TCP"
                                : (flags & packet::kUdp) != 0  ? "UDP"
                                : (flags & packet::kIcmp) != 0 ? "ICMP"
                                : (flags & packet::kIpv4) != 0 ? "IPv4"
                                                               : "not IPv4";
  return concat("packet ", packet.index(), " (", kind, ", ", before.length, " bytes)");
}

bool same(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return std::memcmp(a.data(), b.data(), a.size()) == 0;
}

std::span<const std::uint8_t> frame_of(PacketImage const& image) {
  return std::span(image.slot).subspan(image.offset, image.length);
}

bool same(RecordLine const& a, RecordLine const& b) {
  return a.packet == b.packet && a.verdict == b.verdict && a.reason == b.reason && a.fields == b.fields;
}

std::vector<std::uint64_t> counts_of(Outcome const& outcome) {
  std::vector<std::uint64_t> counts(outcome.drops().begin(), outcome.drops().end());
  counts.push_back(outcome.alerts());
  counts.push_back(outcome.replies());
  return counts;
}

std::vector<std::uint64_t> minus(std::vector<std::uint64_t> counts, std::vector<std::uint64_t> const& before) {
  std::transform(counts.begin(), counts.end(), before.begin(), counts.begin(), std::minus());
  return counts;
}

/// What complete() of the twin gets of the same launch.
class SameSpill final : public SpillRows {
 public:
  explicit SameSpill(Completion const& completion) : completion_(&completion) {}
  std::span<const std::byte> row(std::uint32_t row) const override { return completion_->spill(row); }

 private:
  Completion const* completion_;
};

}  // namespace

std::string name_of(Step step) {
  constexpr std::string_view kNames[] = {"take_unsupported()", "prepare()", "compute()", "complete()"};
  return std::string(kNames[static_cast<std::size_t>(step)]);
}
std::string reads_of(Step step) {
  constexpr std::string_view kNames[] = {"prepare_reads", "prepare_reads", "cr", "complete_reads"};
  return std::string(kNames[static_cast<std::size_t>(step)]);
}
std::string writes_of(Step step) {
  constexpr std::string_view kNames[] = {"prepare_writes", "prepare_writes", "cw", "complete_writes"};
  return std::string(kNames[static_cast<std::size_t>(step)]);
}

TwinNf::TwinNf(Descriptor const& descriptor, std::unique_ptr<Nf> nf, std::unique_ptr<Nf> twin, packet::Batch const& all,
               Poison poison)
    : nf_(std::move(nf)),
      twin_(std::move(twin)),
      hints_(nf_->hints()),
      all_(all),
      poison_(poison),
      said_by_twin_(descriptor.drop_reasons.size() + framework_reasons().size(), true) {}

void TwinNf::take_unsupported(packet::Packet const& packet, Outcome& outcome) {
  const auto slot = static_cast<std::uint32_t>(packet.index());
  const packet::Batch one = all_.subset({&slot, 1});
  call({Step::kTakeUnsupported, one, &outcome}, [&](Nf& nf, Outcome& to) { nf.take_unsupported(one[0], to); });
}

void TwinNf::prepare(packet::Batch const& batch, std::span<std::byte> aux, Outcome& outcome) {
  std::vector<std::byte> by_twin(aux.size());
  call({Step::kPrepare, batch, &outcome},
       [&](Nf& nf, Outcome& to) { nf.prepare(batch, &nf == twin_.get() ? std::span(by_twin) : aux, to); });
  compare_structs("aux", batch, aux, by_twin);
}

void TwinNf::compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) {
  std::vector<std::byte> by_twin(results.size());
  call({Step::kCompute, batch, nullptr},
       [&](Nf& nf, Outcome&) { nf.compute(batch, aux, &nf == twin_.get() ? std::span(by_twin) : results); });
  compare_structs("result", batch, results, by_twin);
}

void TwinNf::complete(Completion const& completion) {
  const SameSpill spill(completion);
  call({Step::kComplete, completion.batch(), &completion.outcome()}, [&](Nf& nf, Outcome& to) {
    nf.complete({completion.batch(), completion.aux<std::byte>(), completion.results<std::byte>(), to,
                 completion.from_device() ? &spill : nullptr});
  });
}

Status TwinNf::finish() {
  CATENA_RETURN_IF_ERROR(twin_->finish());
  CATENA_RETURN_IF_ERROR(nf_->finish());
  const std::vector<Statistic> expected = nf_->statistics();
  const std::vector<Statistic> actual = twin_->statistics();
  for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    if (actual[i].value != expected[i].value) {
      differs(concat("statistic ", expected[i].name, " is ", actual[i].value, " instead of ", expected[i].value));
    }
  }
  if (actual.size() != expected.size() || twin_->end_report() != nf_->end_report()) {
    differs("the report at the end is another one");
  }
  return absl::OkStatus();
}

void TwinNf::differs(std::string text) {
  if (difference_.empty()) {
    difference_ = std::move(text);
  }
}

void TwinNf::call(Call const& call, std::function<void(Nf&, Outcome&)> const& of) {
  const std::vector<PacketImage> before = images_of(call.batch);
  const std::vector<PacketImage> given = poisoned(call, before);
  Outcome& outcome = call.outcome != nullptr ? *call.outcome : said_by_twin_;
  const auto counts = counts_of(outcome);
  const auto counts_of_twin = counts_of(said_by_twin_);
  const std::size_t lines = outcome.lines().size();
  const std::size_t lines_of_twin = said_by_twin_.lines().size();

  put_back(call.batch, given);
  of(*twin_, said_by_twin_);
  const std::vector<PacketImage> by_twin = images_of(call.batch);
  put_back(call.batch, before);
  of(*nf_, outcome);
  const std::vector<PacketImage> by_nf = images_of(call.batch);

  for (std::uint32_t i = 0; i < call.batch.size(); ++i) {
    judge(call.step, {call.batch[i], before[i], given[i], by_twin[i], by_nf[i]});
  }
  if (call.outcome != nullptr) {
    compare_words(lines, lines_of_twin, outcome);
    if (minus(counts_of(said_by_twin_), counts_of_twin) != minus(counts_of(outcome), counts)) {
      differs("packets are dropped for other reasons, or counted otherwise");
    }
  }
}

std::vector<PacketImage> TwinNf::poisoned(Call const& call, std::vector<PacketImage> images) {
  if (poison_.step && *poison_.step != call.step) {
    return images;
  }
  const FieldSet readable = reads(hints_, call.step);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::uint32_t scattered = call.batch.slots()[i] * kScatter;
    const std::uint32_t poison = ((scattered >> 16) + poison_.round) % kPoisons;
    for (Part const& part : parts_in(call.step, images[i])) {
      if (!may_read(readable, part.id) && (!poison_.part || *poison_.part == part.id)) {
        overwrite(images[i].bytes().subspan(part.begin, part.size), poison, scattered + part.begin);
      }
    }
  }
  return images;
}

void TwinNf::judge(Step step, Seen const& seen) {
  auto const& [packet, before, given, by_twin, by_nf] = seen;
  if (by_twin.verdict != by_nf.verdict) {
    differs(concat("the verdict of ", text_of(packet, before), " is ", name_of(by_twin.verdict), " instead of ",
                   name_of(by_nf.verdict)));
  } else if (by_nf.verdict == kReply) {  // its writes need no hint, and all of it leaves
    if (by_twin.offset != by_nf.offset || by_twin.length != by_nf.length || !same(frame_of(by_twin), frame_of(by_nf))) {
      differs(concat("the reply that ", text_of(packet, before), " becomes is another one"));
    }
  } else {
    for (Part const& part : parts_in(step, before)) {
      judge(step, part, seen);
    }
  }
}

void TwinNf::judge(Step step, Part const& part, Seen const& seen) {
  auto const& [packet, before, given, by_twin, by_nf] = seen;
  const auto of = [&part](PacketImage const& image) { return image.bytes().subspan(part.begin, part.size); };
  if (same(of(by_twin), of(given)) && same(of(by_nf), of(before))) {
    return;  // left alone
  }
  find_writes(step, part, seen);
  for (std::uint32_t at = part.begin; at < part.begin + part.size; ++at) {
    const bool is_left_alone = by_twin.bytes()[at] == given.bytes()[at] && by_nf.bytes()[at] == before.bytes()[at];
    if (by_twin.bytes()[at] != by_nf.bytes()[at] && !is_left_alone) {
      return differs(concat(name_of_part(part.id), " of ", text_of(packet, before), " becomes another one"));
    }
  }
}

/// Of a part that was not left alone.
void TwinNf::find_writes(Step step, Part const& part, Seen const& seen) {
  const FieldSet writable = writes(hints_, step);
  const bool is_rare = names(hints_.prepare_writes_few, part.id) && step < Step::kCompute;
  if (may_write(writable, part.id) && (!is_rare || seen.by_nf.rewritten != 0)) {
    return;
  }
  // a step that moves the frame writes what becomes a part of it
  const bool moves_frame = part.id == kRoom && (writable & kFrameBounds) != 0;
  for (std::uint32_t at = part.begin; at < part.begin + part.size; ++at) {
    const bool is_written =
        seen.by_twin.bytes()[at] != seen.given.bytes()[at] || seen.by_nf.bytes()[at] != seen.before.bytes()[at];
    const bool is_in_frame = at >= seen.by_nf.offset && at < seen.by_nf.end();
    if (is_written && !(moves_frame && is_in_frame)) {
      return note_write({step, part.id, text_of(seen.packet, seen.before), is_rare});
    }
  }
}

void TwinNf::note_write(UndeclaredWrite const& write) {
  const bool is_known = std::any_of(writes_.begin(), writes_.end(), [&](UndeclaredWrite const& other) {
    return other.step == write.step && other.part == write.part;
  });
  if (!is_known) {
    writes_.push_back(write);
  }
}

/// Record lines from these on, of the last call.
void TwinNf::compare_words(std::size_t first_line, std::size_t first_line_of_twin, Outcome& outcome) {
  const auto actual = std::span(said_by_twin_.lines()).subspan(first_line_of_twin);
  const auto expected = std::span(outcome.lines()).subspan(first_line);
  const auto [twin, nf] = std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end(),
                                        [](auto const& a, auto const& b) { return same(a, b); });
  if (twin != actual.end() || nf != expected.end()) {
    const auto text_of = [](auto line, auto end) {
      return line == end ? std::string("none") : concat("{", line->fields, "} of packet ", line->packet);
    };
    differs(concat("the record is ", text_of(twin, actual.end()), " instead of ", text_of(nf, expected.end())));
  }
}

void TwinNf::compare_structs(std::string_view what, packet::Batch const& batch, std::span<const std::byte> by_nf,
                             std::span<const std::byte> by_twin) {
  const std::size_t bytes = batch.size() == 0 ? 0 : by_nf.size() / batch.size();
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const bool continues = packet::ended(static_cast<std::uint8_t>(batch[i].verdict())) == 0;
    if (continues && !std::ranges::equal(by_nf.subspan(i * bytes, bytes), by_twin.subspan(i * bytes, bytes))) {
      differs(concat("the ", what, " struct of packet ", batch[i].index(), " is another one"));
      return;
    }
  }
}

}  // namespace catena::nf::testing
