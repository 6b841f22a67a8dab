// SPDX-License-Identifier: Apache-2.0
#include "gpu/check/static_check.hpp"

#include "gpu/check/kernel_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace catena::static_check {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A kernel with the piece in its body passes.
void expect_passes(testing::Pieces const& pieces) {
  const Report report = testing::check(testing::kernel_with(pieces));
  EXPECT_TRUE(report.ok()) << testing::text_of(report.refused);
}

Report check_files(std::vector<kernel::EmbeddedFile> const& files) { return testing::check_files(files); }

std::string only_rule(Report const& report) {
  EXPECT_THAT(report.refused, SizeIs(1)) << testing::text_of(report.refused);
  return report.refused.empty() ? "" : report.refused.front().rule;
}

TEST(StaticCheck, the_kernel_that_escapes_are_put_into_passes_without_a_word) {
  const Report report = testing::check(testing::kernel_with({}));
  EXPECT_TRUE(report.ok()) << testing::text_of(report.refused);
  EXPECT_THAT(report.cautions, IsEmpty()) << testing::text_of(report.cautions);
}

TEST(StaticCheck, what_kernels_are_written_with_passes) {
  expect_passes({.body = "for (u32 i = 0; i < 4; ++i) { counts.words[(i + 3) % 4] ^= counts.words[i]; }"});
  expect_passes({.body = "counts.words[value & 3U] = counts.words[value >> 30];"});
  expect_passes({.body = "const u32 at = value % 4; counts.words[at] = value;"});
  expect_passes({.body = "u32& word = counts.words[1]; word += value;"});
  expect_passes({.body = "const auto add = [&](u32 x) { value += x; }; add(1);"});
  expect_passes({.body = "const auto pick = [table](auto i) { return table[i]; }; value = pick(u64{1}) + pick(2U);"});
  expect_passes({.body = "switch (value) { case 1: value = 2; break; default: value = value != 0 ? 3 : 4; }"});
  expect_passes(
      {.body = "const auto own = ctx.for_group_packet(1); const auto other = own.packet(); value = other.row();"});
  expect_passes({.body = "auto walk = table.lookups(); value = walk[walk[value]];"});
  expect_passes({.body = "CATENA_UNROLL\nfor (u32 i = 0; i < 4; ++i) { value += CATENA_LANES; }"});
  expect_passes(
      {.vendor = "template <typename T> struct alignas(8) Pair { T a; T b{}; T sum() const { return a + b; } };",
       .body = "value = Pair<u32>{1, 2}.sum();"});
  expect_passes({.vendor =
                     "class Sum { public: explicit Sum(u32 x) : total_(x) {} u32 total() const { return total_; } "
                     "private: u32 total_; };",
                 .body = "value = Sum(value).total();"});
  expect_passes({.vendor = "constexpr u32 kTable[4] = {1, 2, 3, 4};", .body = "value = kTable[value % 4];"});
  expect_passes(
      {.vendor = "struct Aux { u32 word; };", .body = "value = packet.aux<Aux>().word; packet.set_result(value);"});
  expect_passes({.body = "[[maybe_unused]] const u32 unused = 1;"});
}

TEST(StaticCheck, what_is_read_alone_stays_what_it_was_made_of) {
  expect_passes(
      {.body = "const u32 at = value % 4; const u32 other = at ^ 1U; counts.words[other] = counts.words[at];"});
  expect_passes({.body =
                     "const u32 at = value % 4; const auto read = [at](u32 x) { return x + at; }; counts.words[at] = "
                     "read(1);"});
  expect_passes({.body =
                     "const u32 a = value % 4; const u32 b = 3; const u32 at = value > 7 ? a : b; counts.words[at] = "
                     "counts.words[a];"});
  expect_passes({.body = "constexpr u32 kEnd = 4; const auto each = [&] { for (u32 i = 0; i < kEnd; ++i) { "
                         "counts.words[i] = value; } }; each();"});
  expect_passes({.body = "const u32 shift = value % 32; counts.words[(value >> shift) % 4] = value >> 31;"});
  expect_passes({.body = "counts.words[static_cast<u32>(value > 7)  & 3U] = u32(value) + (u32)7U;"});
}

TEST(StaticCheck, members_are_made_of_those_above_them) {
  expect_passes(
      {.vendor = "struct Pair { u32 a; u32 b = a + 1; u32 c = twice(b); static u32 twice(u32 x) { return 2 * x; } };",
       .body = "value = Pair{value}.c;"});
  expect_passes({.vendor = "struct Pair { u32 a; u32 b; explicit Pair(u32 x) : a(x), b([this] { return a; }()) {} };",
                 .body = "value = Pair(value).b;"});
}

TEST(StaticCheck, functions_with_a_result_end_in_many_ways) {
  constexpr const char* kKind = "enum class Kind : u32 { kOne, kTwo };";
  expect_passes({.vendor = kKind,
                 .body =
                     "switch (static_cast<Kind>(value)) { case Kind::kOne: value = 1; break; case Kind::kTwo: break; "
                     "}"});
  for (const char* body : {"switch (kind) { case Kind::kOne: return 1; default: return 2; }",
                           "switch (kind) { case Kind::kOne: break; default: return 2; } return 1;",
                           "if (kind == Kind::kOne) { return 1; } else { return 2; }",
                           "for (u32 i = 0;; ++i) { if (i == 9) { return i; } }", "while (true) { return 1; }",
                           "if constexpr (sizeof(u32) == 4) { return 1; } else { return 2; }", "{ return 1; }"}) {
    expect_passes(
        {.vendor = concat(kKind, "inline u32 of(Kind kind) { ", body, " }"), .body = "value = of(Kind::kTwo);"});
  }
}

TEST(StaticCheck, loops_without_a_known_bound_and_divisors_that_may_be_zero_are_named_and_not_refused) {
  const Report loop = testing::check(testing::kernel_with({.body = "while (value > 7) { value = table[value]; }"}));
  EXPECT_TRUE(loop.ok()) << testing::text_of(loop.refused);
  ASSERT_THAT(loop.cautions, SizeIs(1));
  EXPECT_EQ(loop.cautions.front().rule, "unbounded-loop");

  const Report division = testing::check(testing::kernel_with({.body = "value = 7 / value;"}));
  EXPECT_TRUE(division.ok()) << testing::text_of(division.refused);
  ASSERT_THAT(division.cautions, SizeIs(1));
  EXPECT_EQ(division.cautions.front().rule, "division");

  for (const char* body :
       {"for (u32 i = 0; i < 100; ++i) { value += i; }", "value = value / 7 + 7 / (value | 1U);",
        "const Bytes frame = packet.frame(); for (u32 i = 0; i < frame.length(); ++i) { value += "
        "frame[static_cast<i32>(i)]; }",
        "for (u32 i = catena::kernel::local_id(); i < 256; i += catena::kernel::group_size()) { table.set(i, 0); }"}) {
    const Report report = testing::check(testing::kernel_with({.body = body}));
    EXPECT_THAT(report.cautions, IsEmpty()) << body << "\n" << testing::text_of(report.cautions);
  }
}

TEST(StaticCheck, a_finding_names_file_line_and_column_and_what_to_write) {
  const std::string header =
      "#pragma once\n#include <catena/core/types.hpp>\nnamespace vendor {\nstruct Held {\n  catena::u32* raw;\n};\n}\n";
  const std::string kernel = "#include \"held.hpp\"\n" + testing::kernel_with({});
  const Report report = check_files({{"base.kernel.cpp", kernel.c_str()}, {"held.hpp", header.c_str()}});
  ASSERT_THAT(report.refused, SizeIs(1)) << testing::text_of(report.refused);
  EXPECT_EQ(report.refused.front().text(),
            "held.hpp:5:16: 'catena::u32 *' is an unchecked pointer; use an IsoPtr from Context or PacketView, or "
            "an index [pointer]");
}

TEST(StaticCheck, what_the_compiler_refuses_is_a_finding_where_the_author_wrote_it) {
  const Report unknown = testing::check(testing::kernel_with({.body = "value = nothing;"}));
  EXPECT_EQ(only_rule(unknown), "compile");
  EXPECT_THAT(unknown.refused.front().message, HasSubstr("nothing"));
  const Report unnamed = testing::check(
      testing::kernel_with({.vendor = "struct Large { u32 words[2]; };", .body = "packet.set_result(Large{});"}));
  EXPECT_EQ(only_rule(unnamed), "compile");
  EXPECT_EQ(unnamed.refused.front().file, "base.kernel.cpp");
  EXPECT_THAT(unnamed.refused.front().message, HasSubstr("not the descriptor's result struct"));
}

TEST(StaticCheck, files_are_those_of_the_kernel_by_names_that_mean_the_same_to_every_compiler) {
  const std::string kernel = testing::kernel_with({});
  for (const char* name : {"catena/kernel/iso_ptr.hpp", "/etc/passwd", "../held.hpp", "a\nb.hpp", ""}) {
    EXPECT_EQ(only_rule(check_files({{"base.kernel.cpp", kernel.c_str()}, {name, ""}})), "file-name") << name;
  }
  EXPECT_EQ(only_rule(check_files({{"base.kernel.cpp", kernel.c_str()}, {"base.kernel.cpp", ""}})), "file-name");

  const std::string middle = "#pragma once\n#include \"deep.hpp\"\n";
  const std::string outer = "#include \"sub/middle.hpp\"\n" + kernel;
  const Report twice = check_files({{"base.kernel.cpp", outer.c_str()},
                                    {"sub/middle.hpp", middle.c_str()},
                                    {"sub/deep.hpp", "#pragma once\n"},
                                    {"deep.hpp", "#pragma once\n"}});
  EXPECT_EQ(only_rule(twice), "include");
}

TEST(StaticCheck, sources_of_hostile_size_and_nesting_are_refused_in_time) {
  const auto repeated = [](std::string const& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) {
      all += text;
    }
    return all;
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(only_rule(testing::check(repeated("// nothing\n", 100000))), "size");
  const std::vector<kernel::EmbeddedFile> many(65, kernel::EmbeddedFile{"base.kernel.cpp", ""});
  EXPECT_EQ(only_rule(check_files(many)), "size");

  const std::string parentheses = "value = " + repeated("(", 100000) + "1" + repeated(")", 100000) + ";";
  EXPECT_FALSE(testing::check(testing::kernel_with({.body = parentheses})).ok());
  const std::string minuses = "value = " + repeated("- ", 200000) + "1;";
  EXPECT_FALSE(testing::check(testing::kernel_with({.body = minuses})).ok());
  const std::string blocks = repeated("{", 100000) + repeated("}", 100000);
  EXPECT_FALSE(testing::check(testing::kernel_with({.body = blocks})).ok());
  const std::string templates = "template <u32 N> struct Deep { using Next = typename Deep<N + 1>::Next; };";
  EXPECT_FALSE(testing::check(testing::kernel_with({.vendor = templates, .body = "Deep<0>::Next x{};"})).ok());
  const std::string wide =
      "template <u64 N, u64 M> struct Wide { static constexpr u64 kSum = Wide<N - 1, M * 2>::kSum + Wide<N "
      "- 1, M * 2 + 1>::kSum; }; template <u64 M> struct Wide<0, M> { static constexpr u64 kSum = M; };";
  EXPECT_EQ(only_rule(testing::check(testing::kernel_with({.vendor = wide, .body = "value = Wide<40, 1>::kSum & 1;"}),
                                     {.time = std::chrono::seconds{5}})),
            "no-end");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{120});
}

TEST(StaticCheck, defines_are_those_of_plans) {
  for (const char* wrong :
       {"private=public", "CATENA_LANES", "CATENA_LANES=4U;int x", "CATENA_LANES=", "CATENA_LANES=0U",
        "CATENA_LANES=group_size", "CATENA_LANES=2048U", "CATENA_RESULT_BYTES=-4", "CATENA_RESULT_BYTES=260U",
        "CATENA_AUX_BYTES=2U", "CATENA_SHARED=2", "CATENA_ANY_GROUPS=shared_buffer_bytes",
        "CATENA_READS=18446744073709551615UL", "CATENA_SPILL_FACTOR=99999999999999999999", "CATENA_LANES=010",
        "CATENA_LANES=4ULU", "CATENA_OTHER=1U"}) {
    device::ProgramSource source = program::with_sdk({});
    source.files.insert(source.files.begin(), {"base.kernel.cpp", testing::kernel_with({})});
    source.defines = {wrong};
    EXPECT_EQ(check_kernel(source).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(StaticCheck, a_macro_has_one_value) {
  device::ProgramSource source = program::with_sdk({});
  source.files.insert(source.files.begin(), {"base.kernel.cpp", testing::kernel_with({})});
  source.defines = testing::defines();
  EXPECT_EQ(check_kernel(source).status(), absl::OkStatus());
  source.defines.emplace_back("CATENA_LANES=4U");
  EXPECT_EQ(check_kernel(source).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace catena::static_check
