// SPDX-License-Identifier: Apache-2.0
// What becomes of the files that a chain writes when something fails.
#include <catena/core/testing/scratch_folder.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "pipeline/session.hpp"
#include "pipeline/test_support.hpp"

namespace catena::runtime {
namespace {

using testing::config_of;
using ::testing::HasSubstr;

/// Fails with its second unit.
class FailingSink final : public io::Sink {
 public:
  explicit FailingSink(std::unique_ptr<io::Sink> inner) : inner_(std::move(inner)) {}
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    CATENA_RETURN_IF_ERROR(inner_->send(pool, unit));
    return ++units_ == 2 ? absl::DataLossError("the port is gone") : absl::OkStatus();
  }
  Status finish() override { return inner_->finish(); }
  io::SinkCounts counts() const override { return inner_->counts(); }
  std::string describe() const override { return "failing"; }

 private:
  std::unique_ptr<io::Sink> inner_;
  int units_ = 0;
};

TEST(Outputs, have_what_came_to_them_when_a_failed_run_returns) {
  const ScratchFolder folder;
  RunOptions options;
  options.make_sink = [&]() -> Result<std::unique_ptr<io::Sink>> {
    CATENA_ASSIGN_OR_RETURN(auto file, io::open_pcap_sink(folder.path("out.pcap")));
    return std::make_unique<FailingSink>(std::move(file));
  };
  auto chain = Session::create(config_of("{generator: {packet: 60, count: 2560}}", "null"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(std::string((*chain)->run().message()), HasSubstr("the port is gone"));
  // a process whose device hangs leaves without a destructor
  EXPECT_EQ(folder.read("out.pcap").size(), 24U + 2 * 256 * (16 + 60));
}

TEST(Outputs, of_a_chain_that_cannot_be_made_are_as_they_were) {
  const ScratchFolder folder;
  for (const char* name : {"out.pcap", "record", "trace"}) {
    folder.write(name, "of yesterday");
  }
  folder.write("damaged.pcap", "no capture");
  RunOptions options;
  options.record_path = folder.path("record");
  options.trace_path = folder.path("trace");
  const std::string tx = "{pcap: " + folder.path("out.pcap") + "}";
  const Result<std::unique_ptr<Session>> damaged =
      Session::create(config_of("{pcap: " + folder.path("damaged.pcap") + "}", tx), options, nf::Registry());
  EXPECT_THAT(std::string(damaged.status().message()), HasSubstr("not a pcap or pcapng capture"));
  options.make_source = [] { return absl::UnavailableError("no such source"); };
  EXPECT_FALSE(Session::create(config_of("{generator: {}}", tx), options, nf::Registry()).ok());
  options.make_source = nullptr;
  options.trace_path = folder.path("no/such/folder");
  EXPECT_FALSE(Session::create(config_of("{generator: {}}", tx), options, nf::Registry()).ok());
  for (const char* name : {"out.pcap", "record", "trace"}) {
    EXPECT_EQ(folder.read(name), "of yesterday") << name;
  }
}

}  // namespace
}  // namespace catena::runtime
