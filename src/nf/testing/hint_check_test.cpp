// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/hint_check.hpp"

#include <catena/packet/icmp.hpp>
#include <catena/packet/testing/traffic.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>
#include <utility>

#include "nf/testing/packet_image.hpp"

namespace catena::nf::testing {
namespace {

using packet::fields;
using packet::Packet;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(scripted) {
  const auto packet = ctx.packet();
  if (packet.valid()) packet.set_result<u32>(7);
}
)";
constexpr char kWritingKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(scripted) {
  const auto packet = ctx.packet();
  if (!packet.valid()) return;
  const auto payload = packet.payload();
  if (payload.length() > 8) { payload.set(0, 1); payload.set_be16(2, 1); payload.from(4).set_be32(0, 1); }
  packet.set_result<u32>(7);
}
)";
constexpr char kReadingKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(scripted) {
  const auto packet = ctx.packet();
  if (packet.valid()) packet.set_result<u32>(packet.payload()[-8]);
}
)";
/// What an NF does with each packet, and what it says that it does.
struct Script {
  Hints hints = {};
  const char* kernel = kKernel;
  std::function<void(Packet const&, Outcome&)> take_unsupported = {};
  std::function<std::uint32_t(Packet const&, Outcome&)> prepare = {};  ///< returns aux
  std::function<std::uint32_t(Packet const&)> compute = {};            ///< returns the result
  std::function<void(Packet const&, std::uint32_t, Outcome&)> complete = {};
};

constexpr std::array<DropReason, 2> kReasons{{{"one", "a reason"}, {"two", "another"}}};

class Scripted final : public Nf {
 public:
  explicit Scripted(Script script) : script_(std::move(script)), source_{{{"scripted.kernel.cpp", script_.kernel}}} {}
  Hints hints() const override { return script_.hints; }
  void take_unsupported(Packet const& packet, Outcome& outcome) override {
    if (script_.take_unsupported) {
      script_.take_unsupported(packet, outcome);
    }
  }
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, Outcome& outcome) override {
    for (std::uint32_t i = 0; script_.prepare && i < batch.size(); ++i) {
      array_of<std::uint32_t>(aux)[i] = script_.prepare(batch[i], outcome);
    }
  }
  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/, std::span<std::byte> results) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      array_of<std::uint32_t>(results)[i] = script_.compute ? script_.compute(batch[i]) : 7;
    }
  }
  void complete(Completion const& completion) override {
    for (std::uint32_t i = 0; script_.complete && i < completion.batch().size(); ++i) {
      script_.complete(completion.batch()[i], completion.results<std::uint32_t>()[i], completion.outcome());
    }
  }
  Result<KernelSide> kernel_side() const override {
    KernelSide side;
    side.spec.source = source_;
    side.spec.name = "scripted";
    side.spec.headroom = 16;
    return side;
  }

 private:
  Script script_;
  std::array<kernel::EmbeddedFile, 1> source_;
};

Descriptor descriptor() {
  Descriptor descriptor;
  descriptor.type = "liar";
  descriptor.takes_unsupported = true;
  descriptor.drop_reasons = kReasons;
  descriptor.aux_bytes = 4;
  descriptor.result_bytes = 4;
  descriptor.has_kernel = true;
  return descriptor;
}

/// TCP, UDP and ICMP with payload, one padded, one tagged and with options, one fragment, one that is no IPv4.
std::vector<Frame> some_frames() {
  std::vector<Frame> frames;
  const std::vector<Frame> kinds = packet::testing::frames_of_every_kind();
  while (frames.size() < 200) {
    for (Frame const& kind : kinds) {
      frames.push_back(kind);
      frames.back().insert(frames.back().end(), 5, 0xEE);
    }
  }
  return frames;
}

std::vector<std::string> lies_of(Script const& script, device::Device* device = nullptr) {
  static const Descriptor kDescriptor = descriptor();
  static const std::vector<Frame> kFrames = some_frames();
  const auto make = [&](std::string const& /*folder*/) -> Result<std::unique_ptr<Nf>> {
    return std::make_unique<Scripted>(script);
  };
  const Result<std::vector<std::string>> lies = find_lies({kDescriptor, make, kFrames}, device);
  EXPECT_TRUE(lies.ok()) << lies.status();
  return lies.ok() ? *lies : std::vector<std::string>();
}

std::uint8_t ttl(Packet const& packet) { return packet.l3()[8]; }

std::uint32_t drop_high_ttl(Packet const& packet, Outcome& outcome) {
  if (ttl(packet) > 100) {
    outcome.drop(packet, 0);
  }
  return 0;
}
void record_result(Packet const& packet, std::uint32_t result, Outcome& outcome) {
  outcome.record(packet, packet::Verdict::kPass, -1, std::to_string(result));
}

TEST(HintCheck, an_nf_that_names_what_it_uses_tells_no_lie) {
  constexpr packet::FieldSet kTtl = fields(packet::kIpv4Ttl);
  Script honest;
  honest.hints = {.cr = kTtl | fields(packet::kPayload),
                  .cw = fields(packet::kIpv4Ttl, packet::kPayload, packet::kMetaPort),
                  .prepare_reads = kTtl | fields(packet::kTrailer),
                  .prepare_writes = fields(packet::kTrailer),
                  .complete_reads = fields(packet::kMetaPort),
                  .complete_writes = fields(packet::kIpv4Tos)};
  honest.prepare = [](Packet const& packet, Outcome& outcome) {
    packet.frame()[packet.length() - 1] ^= ttl(packet);
    return drop_high_ttl(packet, outcome);
  };
  honest.compute = [](Packet const& packet) {
    std::uint32_t sum = 0;
    for (std::uint8_t& byte : packet.payload()) {
      sum += byte++;
    }
    packet.l3()[8] = static_cast<std::uint8_t>(packet.l3()[8] - 1);
    packet.set_port(5);
    return sum;
  };
  honest.complete = [](Packet const& packet, std::uint32_t result, Outcome& outcome) {
    record_result(packet, result + packet.port(), outcome);
    packet.l3()[1] = 4;
  };
  EXPECT_THAT(lies_of(honest), IsEmpty());
}

TEST(HintCheck, an_undeclared_read_is_found_in_each_step) {
  Script script;
  script.prepare = drop_high_ttl;
  EXPECT_THAT(lies_of(script),
              ElementsAre(AllOf(StartsWith("liar: prepare() reads ipv4.ttl, which prepare_reads does not name: with "
                                           "other values there the verdict of packet "),
                                HasSubstr(" is drop instead of pass"))));
  script = {};
  script.compute = [](Packet const& packet) { return std::uint32_t{ttl(packet)}; };
  EXPECT_THAT(lies_of(script), ElementsAre(AllOf(StartsWith("liar: compute() reads ipv4.ttl, which cr does not name"),
                                                 HasSubstr("the result struct of packet "))));
  script = {};
  script.complete = [](Packet const& packet, std::uint32_t, Outcome& outcome) {
    record_result(packet, ttl(packet), outcome);
  };
  EXPECT_THAT(lies_of(script),
              ElementsAre(AllOf(StartsWith("liar: complete() reads ipv4.ttl, which complete_reads does not name"),
                                HasSubstr("the record is {"), HasSubstr("} of packet "))));
  script = {};
  script.take_unsupported = [](Packet const& packet, Outcome& outcome) {
    if (!packet.is(packet::kIpv4) && packet.frame()[14] == 0x45) {
      outcome.drop(packet, 1);
    }
  };
  EXPECT_THAT(lies_of(script), ElementsAre(StartsWith("liar: take_unsupported() reads bytes of no field, which "
                                                      "prepare_reads does not name")));
}

TEST(HintCheck, an_undeclared_write_is_found_in_each_step) {
  Script script;
  script.prepare = [](Packet const& packet, Outcome&) {
    packet.l3()[8] = 9;
    return 0U;
  };
  EXPECT_THAT(lies_of(script), ElementsAre("liar: prepare() writes ipv4.ttl of packet 0 (TCP, 92 bytes), which "
                                           "prepare_writes does not name"));
  script = {};
  script.compute = [](Packet const& packet) {
    packet.l3()[8] = 9;
    return 7U;
  };
  EXPECT_THAT(lies_of(script), ElementsAre("liar: compute() writes ipv4.ttl of packet 0 (TCP, 92 bytes), which cw does "
                                           "not name"));
  script = {};
  script.complete = [](Packet const& packet, std::uint32_t, Outcome&) { packet.l3()[8] = 9; };
  EXPECT_THAT(lies_of(script), ElementsAre("liar: complete() writes ipv4.ttl of packet 0 (TCP, 92 bytes), which "
                                           "complete_writes does not name"));
  script = {};
  script.take_unsupported = [](Packet const& packet, Outcome&) { packet.frame()[0] = 9; };
  EXPECT_THAT(lies_of(script), ElementsAre(AllOf(StartsWith("liar: take_unsupported() writes eth.dst of packet "),
                                                 HasSubstr(", which prepare_writes does not name"))));
}

/// A read that a value would hide, or that shows elsewhere than in verdicts.
TEST(HintCheck, a_read_is_found_whatever_it_does) {
  Script script;
  script.compute = [](Packet const& packet) { return ttl(packet) == 0 ? 1U : 0U; };
  EXPECT_THAT(lies_of(script), ElementsAre(HasSubstr("compute() reads ipv4.ttl"))) << "one value of 256";
  script.compute = [](Packet const& packet) { return ttl(packet) == 0xFF ? 1U : 0U; };
  EXPECT_THAT(lies_of(script), ElementsAre(HasSubstr("compute() reads ipv4.ttl"))) << "another";
  script.compute = [](Packet const& packet) {
    const bool both = ttl(packet) == 64 && packet.l3()[9] == 6;
    return both ? 1U : 0U;
  };
  EXPECT_THAT(lies_of(script), ElementsAre(HasSubstr("ipv4.ttl"), HasSubstr("ipv4.protocol"))) << "two fields";

  script = {};
  script.compute = [](Packet const& packet) {
    packet.l3()[1] = ttl(packet);  // goes into a field that is declared
    return 7U;
  };
  script.hints.cw = fields(packet::kIpv4Tos);
  EXPECT_THAT(lies_of(script),
              ElementsAre(AllOf(HasSubstr("compute() reads ipv4.ttl"), HasSubstr("ipv4.tos of packet "))));

  script = {};
  script.prepare = [](Packet const& packet, Outcome& outcome) {
    outcome.drop(packet, ttl(packet) > 100 ? 1 : 0);
    return 0U;
  };
  EXPECT_THAT(lies_of(script), ElementsAre(AllOf(HasSubstr("prepare() reads ipv4.ttl"), HasSubstr("other reasons"))));
}

TEST(HintCheck, what_a_step_writes_it_may_not_read_for_that) {
  Script script;
  script.hints.cw = fields(packet::kIpv4Ttl);
  script.compute = [](Packet const& packet) {
    packet.l3()[8] = static_cast<std::uint8_t>(packet.l3()[8] - 1);
    return 7U;
  };
  EXPECT_THAT(lies_of(script),
              ElementsAre(AllOf(HasSubstr("compute() reads ipv4.ttl"), HasSubstr("ipv4.ttl of packet"))));
  script.compute = [](Packet const& packet) {
    if (packet.is(packet::kTcp)) {  // a write may leave out packets
      packet.l3()[8] = 0xFF;
    }
    return 7U;
  };
  EXPECT_THAT(lies_of(script), IsEmpty());
}

/// Headers and what is in no header.
TEST(HintCheck, all_that_a_packet_has_is_checked) {
  const auto reads = [](std::function<std::uint32_t(Packet const&)> compute) {
    Script script;
    script.compute = std::move(compute);
    return lies_of(script);
  };
  EXPECT_THAT(reads([](Packet const& packet) { return std::uint32_t{packet.port()}; }),
              ElementsAre(HasSubstr("reads meta.port")));
  EXPECT_THAT(reads([](Packet const& packet) { return packet.payload().empty() ? 0U : packet.payload().back(); }),
              ElementsAre(HasSubstr("reads payload")));
  EXPECT_THAT(reads([](Packet const& packet) { return std::uint32_t{packet.frame()[packet.length() - 1]}; }),
              ElementsAre(HasSubstr("reads trailer")));
  EXPECT_THAT(reads([](Packet const& packet) { return std::uint32_t{packet.frame()[packet.length()]}; }),
              ElementsAre(HasSubstr("reads head- and tailroom")));
  EXPECT_THAT(reads([](Packet const& packet) { return std::uint32_t{packet.frame()[-1]}; }),
              ElementsAre(HasSubstr("reads head- and tailroom")));
  EXPECT_THAT(reads([](Packet const& packet) { return packet.l4() > packet.l3() + 20 ? packet.l3()[20] : 0U; }),
              ElementsAre(HasSubstr("reads ipv4.options")));
  EXPECT_THAT(reads([](Packet const& packet) { return packet.is(packet::kIcmp) ? packet.l4()[4] : 0U; }),
              ElementsAre(HasSubstr("reads icmp.header")));
  EXPECT_THAT(reads([](Packet const& packet) { return packet.is(packet::kUdp) ? packet.l4()[7] : 0U; }),
              ElementsAre(HasSubstr("reads l4.checksum")));
  // the framework itself reads these, so every NF may
  EXPECT_THAT(reads([](Packet const& packet) {
                return packet.length() + packet.offset() + packet.layers().payload_length +
                       static_cast<std::uint32_t>(packet.verdict());
              }),
              IsEmpty());

  const auto writes = [](std::function<void(Packet const&)> write) {
    Script script;
    script.prepare = [write = std::move(write)](Packet const& packet, Outcome&) {
      write(packet);
      return 0U;
    };
    return lies_of(script);
  };
  EXPECT_THAT(writes([](Packet const& packet) { packet.set_port(3); }), ElementsAre(HasSubstr("writes meta.port")));
  EXPECT_THAT(writes([](Packet const& packet) { packet.frame()[packet.length()] = 1; }),
              ElementsAre(HasSubstr("writes head- and tailroom")));
  EXPECT_THAT(writes([](Packet const& packet) { packet.set_extent(packet.offset(), packet.length() - 1U); }),
              ElementsAre(HasSubstr("writes meta.length")));
  EXPECT_THAT(writes([](Packet const& packet) { packet.set_mtu(1000); }), IsEmpty()) << "no plan moves it";
}

TEST(HintCheck, an_nf_that_moves_the_frame_may_write_where_it_is_then) {
  Script script;
  script.hints.prepare_writes = packet::kFrameFields | fields(packet::kMetaOffset, packet::kMetaLength);
  const auto prepend = [](std::uint32_t bytes) {
    return [bytes](Packet const& packet, Outcome&) {
      std::fill_n(packet.frame() - bytes, bytes, std::uint8_t{1});
      packet.set_extent(packet.offset() - 4U, packet.length() + 4U);
      return 0U;
    };
  };
  script.prepare = prepend(4);
  EXPECT_THAT(lies_of(script), IsEmpty());
  script.prepare = prepend(5);
  EXPECT_THAT(lies_of(script), ElementsAre(HasSubstr("prepare() writes head- and tailroom")));
}

TEST(HintCheck, a_reply_is_made_of_what_is_declared) {
  Script script;
  script.prepare = [](Packet const& packet, Outcome& outcome) {
    if (packet::may_report(packet)) {
      packet::make_icmp_error(packet, packet::kTtlExceeded, 1);
      outcome.reply(packet);
    }
    return 0U;
  };
  script.hints.prepare_reads = packet::kIcmpErrorReads;
  EXPECT_THAT(lies_of(script), IsEmpty()) << "its writes need no hint";
  script.hints.prepare_reads &= ~fields(packet::kPayload);
  EXPECT_THAT(lies_of(script),
              Contains(AllOf(HasSubstr("prepare() reads payload"), HasSubstr("the reply that packet "))));
}

TEST(HintCheck, a_rare_write_is_marked) {
  Script script;
  script.hints.prepare_reads = fields(packet::kIcmpHeader, packet::kPayload);
  script.hints.prepare_writes = script.hints.prepare_writes_few = fields(packet::kPayload);
  script.prepare = [](Packet const& packet, Outcome&) {
    if (packet.is(packet::kIcmp)) {
      packet.payload()[0] ^= 1U;
      packet.mark_rewritten();
    }
    return 0U;
  };
  EXPECT_THAT(lies_of(script), IsEmpty());
  script.prepare = [](Packet const& packet, Outcome&) {
    if (packet.is(packet::kIcmp)) {
      packet.payload()[0] ^= 1U;
    }
    return 0U;
  };
  EXPECT_THAT(lies_of(script), ElementsAre(AllOf(StartsWith("liar: prepare() writes payload of packet "),
                                                 HasSubstr("prepare_writes_few names, without mark_rewritten()"))));
}

TEST(HintCheck, what_comes_out_at_the_end_is_compared) {
  static const Descriptor kDescriptor = descriptor();
  const std::vector<Frame> frames = some_frames();
  // counts TTLs in prepare(), and tells them in a statistic or a file
  class Counting final : public Nf {
   public:
    explicit Counting(std::string file) : file_(std::move(file)) {}
    Hints hints() const override { return {}; }
    void prepare(packet::Batch const& batch, std::span<std::byte>, Outcome&) override {
      for (std::uint32_t i = 0; i < batch.size(); ++i) {
        sum_ += ttl(batch[i]);
      }
    }
    void compute(packet::Batch const&, std::span<const std::byte>, std::span<std::byte>) override {}
    Status finish() override {
      if (!file_.empty()) {
        std::ofstream(file_) << sum_;
      }
      return absl::OkStatus();
    }
    std::vector<Statistic> statistics() const override {
      return file_.empty() ? std::vector<Statistic>{{"ttls", sum_}} : std::vector<Statistic>();
    }

   private:
    std::string file_;
    std::uint64_t sum_ = 0;
  };
  for (const bool to_file : {false, true}) {
    const auto make = [&](std::string const& folder) -> Result<std::unique_ptr<Nf>> {
      return std::make_unique<Counting>(to_file ? folder + "/ttls.txt" : std::string());
    };
    const auto lies = find_lies({kDescriptor, make, frames}, nullptr);
    ASSERT_TRUE(lies.ok()) << lies.status();
    EXPECT_THAT(*lies, ElementsAre(AllOf(HasSubstr("prepare() reads ipv4.ttl"),
                                         HasSubstr(to_file ? "the file ttls.txt" : "statistic ttls is "))));
  }
}

TEST(HintCheck, complete_is_checked_after_a_kernel_too) {
  ASSERT_FALSE(devices().empty());
  for (device::Device* device : devices()) {
    SCOPED_TRACE(name_of(device));
    Script script;
    script.compute = [](Packet const&) { return 8U; };  // so that only the kernel says 7
    script.complete = [](Packet const& packet, std::uint32_t result, Outcome& outcome) {
      if (result == 7 && !packet.payload().empty()) {
        record_result(packet, packet.payload()[0], outcome);
        packet.set_port(1);
      }
    };
    EXPECT_THAT(lies_of(script), IsEmpty());
    EXPECT_THAT(lies_of(script, device),
                ElementsAre(HasSubstr("complete() writes meta.port"), HasSubstr("complete() reads payload")));
    script.hints.complete_reads = fields(packet::kPayload);
    script.hints.complete_writes = fields(packet::kMetaPort);
    EXPECT_THAT(lies_of(script, device), IsEmpty());
  }
}

RunResult run_script(Script const& script, device::Device* device) {
  static const Descriptor kDescriptor = descriptor();
  const Result<RunResult> result = run(kDescriptor, std::make_unique<Scripted>(script), some_frames(), device);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

/// What of a kernel's lies the compiler does not refuse.
TEST(HintCheck, a_kernel_that_lies_faults_or_gives_something_else) {
  Script script;
  script.hints.gr = fields(packet::kPayload);
  script.hints.complete_reads = fields(packet::kPayload);
  script.complete = record_result;
  for (device::Device* device : devices()) {
    SCOPED_TRACE(name_of(device));
    script.kernel = kWritingKernel;
    script.hints.gw = fields(packet::kPayload);
    EXPECT_EQ(run_script(script, device).counters.kernel_faults, 0U);
    script.hints.gw = packet::kNoFields;
    EXPECT_GT(run_script(script, device).counters.kernel_faults, 0U);
    EXPECT_GT(run_script(script, device).dropped("kernel_fault"), 0U);

    // the first byte of a UDP header, which is in front of the payload in the frame, but not in a launch
    script.kernel = kReadingKernel;
    script.compute = [](Packet const& packet) { return std::uint32_t{packet.payload().data()[-8]}; };
    EXPECT_NE(run_script(script, device).records, run_script(script, nullptr).records);
  }
}

/// Every byte of an image belongs to one part, and a field to the bytes that kernels and plans find it at.
TEST(PacketImage, every_byte_belongs_to_one_part) {
  for (Frame const& frame : packet::testing::hostile_frames()) {
    PacketImage image{};
    image.offset = packet::kSlotHeadroom;
    image.length = static_cast<std::uint16_t>(frame.size());
    image.layers = packet::parse(frame.data(), image.length);
    std::uint32_t next = 0;
    std::uint32_t unnamed = 0;
    for (Part const& part : parts_of(image, image.layers)) {
      if (part.begin < packet::kSlotBytes) {
        ASSERT_EQ(part.begin, next);
        next += part.size;
      }
      if (part.id < packet::kMetaVerdict && packet::field_size(part.id) != 0 && part.id != packet::kIcmpHeader &&
          packet::has_field(part.id, image.layers.flags)) {
        ASSERT_EQ(part.begin - image.offset, packet::field_offset(part.id, image.layers)) << name_of_part(part.id);
      }
      unnamed += part.id == kUnnamed ? part.size : 0;
    }
    ASSERT_EQ(next, packet::kSlotBytes);
    if ((image.layers.flags & (packet::kIpv4 | packet::kUdp)) == packet::kIpv4) {
      ASSERT_EQ(unnamed, 0U);  // only UDP can end before the datagram does
    }
  }
}

}  // namespace
}  // namespace catena::nf::testing
