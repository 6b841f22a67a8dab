// SPDX-License-Identifier: Apache-2.0
#include "service/exposition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace catena::service {
namespace {

using testing::HasSubstr;
using testing::Not;

ChainView chain(std::string const& name) {
  ChainView view;
  view.applied.name = name;
  view.state = ChainState::kRunning;
  return view;
}

Result<Quotas> series_quotas(std::string const& text) {
  const std::string file = std::filesystem::temp_directory_path() / concat("series-", ::getpid(), ".yaml");
  std::ofstream(file) << text;
  Result<Quotas> quotas = Quotas::load(file);
  std::filesystem::remove(file);
  return quotas;
}

TEST(Exposition, of_no_chains_has_the_version) {
  EXPECT_EQ(exposition({}, {}, {"1.2.3"}),
            "# HELP catena_audit_lost_lines_total Lines missing in the file of the audit, as its disk was full.\n"
            "# TYPE catena_audit_lost_lines_total counter\ncatena_audit_lost_lines_total 0\n"
            "# HELP catena_build_info The version of Catena; always 1.\n# TYPE catena_build_info gauge\n"
            "catena_build_info{version=\"1.2.3\"} 1\n");
}

TEST(Exposition, samples_have_the_chain_and_their_own_labels) {
  ChainView view = chain("a");
  view.counts.add("catena_nf_dropped_packets_total", {{"nf", "fw"}, {"reason", "no_rule"}}, 7);
  const std::string text = exposition({view, chain("b")}, {}, {"1"});
  EXPECT_THAT(text, HasSubstr("# TYPE catena_nf_dropped_packets_total counter\n"
                              "catena_nf_dropped_packets_total{chain=\"a\",nf=\"fw\",reason=\"no_rule\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("catena_chain_state{chain=\"b\",state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("catena_chain_state{chain=\"b\",state=\"failed\"} 0\n"));
}

TEST(Exposition, a_family_is_in_one_place_and_the_same_labels_once) {
  ChainView a = chain("a");
  ChainView b = chain("b");
  for (ChainView* view : {&a, &b}) {
    view->counts.add("catena_rx_packets_total", {}, 1);
    view->counts.add("catena_tx_packets_total", {}, 2);
    view->counts.add("catena_rx_packets_total", {}, 3);
  }
  const std::string text = exposition({a, b}, {}, {"1"});
  EXPECT_THAT(text, HasSubstr("catena_rx_packets_total{chain=\"a\"} 4\ncatena_rx_packets_total{chain=\"b\"} 4\n"));
  EXPECT_EQ(text.find("# TYPE catena_rx_packets_total"), text.rfind("# TYPE catena_rx_packets_total"));
}

TEST(Exposition, nanoseconds_become_seconds) {
  ChainView view = chain("a");
  view.counts.add("catena_stage_busy_ns_total", {{"stage", "rx"}}, 1'500'000'000);
  view.counts.add("catena_rx_paused_ns_total", {}, 2'500'000'000);
  Histogram times;
  times.add(900);
  times.add(1'000'000, 3);
  times.add(60'000'000'000);
  view.counts.add("catena_latency_ns", times);
  view.report.emplace();
  const std::string text = exposition({view}, {}, {"1"});
  EXPECT_THAT(text, HasSubstr("catena_stage_busy_seconds_total{chain=\"a\",stage=\"rx\"} 1.5\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE catena_rx_paused_seconds_total counter\n"
                              "catena_rx_paused_seconds_total{chain=\"a\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE catena_latency_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("catena_latency_seconds_count{chain=\"a\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("catena_latency_seconds_bucket{chain=\"a\",le=\"1e-06\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("catena_latency_seconds_bucket{chain=\"a\",le=\"0.002\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("catena_latency_seconds_bucket{chain=\"a\",le=\"10\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("catena_latency_seconds_bucket{chain=\"a\",le=\"+Inf\"} 5\n"));
  EXPECT_THAT(text, Not(HasSubstr("_ns")));
}

TEST(Exposition, shared_ports_have_what_no_chain_counts) {
  io::SharedPort port;
  port.name = "interface eth0";
  port.received = 10;
  port.unmatched = 3;
  port.port.missed = 2;
  port.busy_ns = 500'000'000;
  const std::string text = exposition({}, {port}, {"1"});
  EXPECT_THAT(text, HasSubstr("catena_port_frames_total{port=\"interface eth0\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("catena_port_dropped_frames_total{port=\"interface eth0\",reason=\"unmatched\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("catena_port_dropped_frames_total{port=\"interface eth0\",reason=\"backlog_full\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("catena_port_busy_seconds_total{port=\"interface eth0\"} 0.5\n"));
}

// promtool's "no help text": every name of counts.hpp
TEST(Exposition, every_metric_has_a_help_text) {
  std::ifstream file(CATENA_SOURCE_DIR "/src/pipeline/counts.hpp");
  const std::string header{std::istreambuf_iterator<char>(file), {}};
  const std::regex name(R"re("(catena_\w+)")re");
  ChainView view = chain("a");
  for (std::sregex_iterator found(header.begin(), header.end(), name); found != std::sregex_iterator(); ++found) {
    view.counts.add((*found)[1].str(), {}, 1);
  }
  const std::string text = exposition({view}, {}, {"1"});
  const std::regex type("# TYPE (\\w+)");
  std::size_t metrics = 0;
  for (std::sregex_iterator found(text.begin(), text.end(), type); found != std::sregex_iterator(); ++found) {
    EXPECT_THAT(text, HasSubstr("# HELP " + (*found)[1].str() + " ")) << (*found)[1];
    ++metrics;
  }
  EXPECT_GT(metrics, 40U);
}

TEST(Exposition, a_user_has_so_many_series_and_others_have_theirs) {
  constexpr uid_t kTenant = 3001;
  std::vector<ChainView> chains{chain("a"), chain("b"), chain("c"), chain("d")};
  for (ChainView& view : chains) {
    for (const char* name : {"x", "y", "z"}) {
      view.counts.add("catena_nf_statistic", {{"name", name}}, 1);
    }
  }
  const Result<Quotas> quotas = series_quotas("users: {3001: {metric_series: 4}}\n");
  ASSERT_TRUE(quotas.ok()) << quotas.status().message();
  chains[0].applied.caller.uid = chains[1].applied.caller.uid = kTenant;
  chains[2].applied.caller.uid = kTenant + 1;
  const std::string text = exposition(chains, {}, {"1", 0, *quotas});
  EXPECT_THAT(text, HasSubstr("catena_nf_statistic{chain=\"a\",name=\"z\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("catena_nf_statistic{chain=\"b\",name=\"x\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("catena_nf_statistic{chain=\"b\",name=\"y\"}")));
  EXPECT_THAT(text, HasSubstr("catena_omitted_series{chain=\"b\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("catena_chain_state{chain=\"b\",state=\"running\"} 1\n"));
  for (const char* name : {"a", "c", "d"}) {
    EXPECT_THAT(text, Not(HasSubstr(concat("catena_omitted_series{chain=\"", name, "\"}"))));
  }
}

TEST(Exposition, a_histogram_counts_with_its_buckets) {
  ChainView view = chain("a");
  view.report.emplace();
  view.applied.caller.uid = 3001;
  const Result<Quotas> quotas = series_quotas("default: {metric_series: 20}\n");
  ASSERT_TRUE(quotas.ok()) << quotas.status().message();
  const std::string text = exposition({view}, {}, {"1", 0, *quotas});
  EXPECT_THAT(text, Not(HasSubstr("catena_latency_seconds")));
  EXPECT_THAT(text, HasSubstr("catena_omitted_series{chain=\"a\"} 21\n"));
  const std::string whole = exposition({view}, {}, {"1"});
  const std::regex series("\ncatena_latency_seconds_");
  EXPECT_EQ(std::distance(std::sregex_iterator(whole.begin(), whole.end(), series), std::sregex_iterator()), 21);
}

TEST(Exposition, label_values_are_escaped) {
  ChainView view = chain("a");
  view.counts.add("catena_nf_statistic", {{"name", "say \"x\"\\\n"}}, 1);
  EXPECT_THAT(exposition({view}, {}, {"1"}), HasSubstr(R"(name="say \"x\"\\\n"} 1)"));
}

}  // namespace
}  // namespace catena::service
