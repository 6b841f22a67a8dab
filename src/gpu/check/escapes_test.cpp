// SPDX-License-Identifier: Apache-2.0
// Ways round IsoPtr. Each is the kernel of kernel_testing.hpp, which passes, with one piece more; '@' in the piece is
// in front of what must be found, and is not part of the source.
#include "gpu/check/kernel_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace catena::static_check {
namespace {

using testing::Pieces;

struct Escape {
  const char* name;
  const char* rule;
  Pieces pieces;
};

// GoogleTest looks for this name
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(Escape const& escape, std::ostream* out) { *out << escape.name; }

struct Place {
  std::uint32_t line;
  std::uint32_t column;
};

/// Of the '@', which is taken out of `text`.
Place take_mark(std::string& text) {
  const std::size_t at = text.find('@');
  EXPECT_NE(at, std::string::npos);
  text.erase(at, 1);
  const std::string_view before = std::string_view(text).substr(0, at);
  const std::size_t line_begin = before.rfind('\n') + 1;
  return {1 + static_cast<std::uint32_t>(std::ranges::count(before, '\n')),
          1 + static_cast<std::uint32_t>(before.size() - line_begin)};
}

/// The lines that a piece takes in the kernel, which has it without its mark.
std::set<std::uint32_t> lines_of(std::string const& source, std::string_view piece) {
  std::string text(piece);
  text.erase(std::remove(text.begin(), text.end(), '@'), text.end());
  std::set<std::uint32_t> lines;
  const std::size_t begin = text.empty() ? std::string::npos : source.find(text);
  if (begin != std::string::npos) {
    const auto first = 1 + static_cast<std::uint32_t>(std::ranges::count(source.substr(0, begin), '\n'));
    for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(std::ranges::count(text, '\n')); ++i) {
      lines.insert(first + i);
    }
  }
  return lines;
}

class Escapes : public ::testing::TestWithParam<Escape> {};

TEST_P(Escapes, is_refused_for_its_own_reason_at_its_place) {
  Escape const& escape = GetParam();
  std::string source = testing::kernel_with(escape.pieces);
  const Place expected = take_mark(source);
  const Report report = testing::check(source);

  const std::string found = testing::text_of(report.refused);
  EXPECT_TRUE(std::ranges::any_of(report.refused,
                                  [&](Finding const& finding) {
                                    return finding.file == "base.kernel.cpp" && finding.line == expected.line &&
                                           finding.column == expected.column && finding.rule == escape.rule;
                                  }))
      << "wanted [" << escape.rule << "] at " << expected.line << ":" << expected.column << ", got\n"
      << found;
  // what stands in a namespace or a function cannot make anything else wrong; the compiler goes on in what it has made
  const bool is_inside = escape.pieces.first.empty() && escape.pieces.global.empty();
  EXPECT_TRUE(!is_inside || std::ranges::all_of(report.refused, [&](Finding const& finding) {
    return lines_of(source, escape.pieces.vendor).contains(finding.line) ||
           lines_of(source, escape.pieces.body).contains(finding.line) ||
           (std::string_view(escape.rule) == "compile" && finding.rule == "compile" &&
            finding.file != "base.kernel.cpp");
  })) << found;
}

// clang-format off
const Escape kEscapes[] = {
    // --- pointers by name ---
    {"pointer_variable", "pointer", {.body = "u32* @raw = {};"}},
    {"pointer_member", "pointer", {.vendor = "struct Held { u32* @raw; };"}},
    {"pointer_parameter", "pointer", {.vendor = "inline u32 read(u32* @raw) { return 0; }"}},
    {"pointer_result", "pointer", {.vendor = "inline u32* @find() { return {}; }"}},
    {"pointer_in_alias", "pointer", {.vendor = "using @Raw = u32*;"}},
    {"pointer_in_typedef", "pointer", {.vendor = "typedef u32* @Raw;"}},
    {"pointer_as_template_argument", "pointer", {.vendor = "template <typename T> struct Box { u32 size; };", .body = "const Box<@u32*> box{4};"}},
    {"pointer_in_template", "pointer", {.vendor = "template <typename T> inline u32 peek(u32 at) { const @T* raw{}; return at; }", .body = "value = peek<u32>(value);"}},
    {"pointer_in_unused_template", "pointer", {.vendor = "template <typename T> inline u32 peek(u32 at) { const @T* raw{}; return at; }"}},
    {"pointer_parameter_of_template", "pointer", {.vendor = "template <u32* @Raw> struct Fixed {};"}},
    {"reference_to_pointer", "pointer", {.vendor = "inline void move(u32*& @raw) {}"}},
    {"array_of_pointers", "pointer", {.body = "u32* @raws[2]{};"}},
    {"null_pointer", "pointer", {.body = "const auto none = @nullptr;"}},
    {"sizeof_of_pointer", "pointer", {.body = "if constexpr (sizeof(@u32*) == 4) { value = 1; }"}},
    {"const_pointer_of_void", "pointer", {.body = "const void* @raw = {};"}},
    {"variable_template_of_pointer", "pointer", {.vendor = "template <typename T> constexpr @T* kNone{};", .body = "value += kNone<u32> == decltype(kNone<u32>){} ? 1U : 0U;"}},
    {"default_argument_of_pointer", "pointer", {.vendor = "inline u32 peek(u32* @raw = {}) { return 1; }", .body = "value = peek();"}},
    // --- pointers that are deduced ---
    {"address_of", "address-of", {.body = "const auto raw = @&value;"}},
    {"address_of_by_word", "address-of", {.body = "const auto raw = @bitand value;"}},
    {"deduced_pointer", "pointer", {.body = "const auto @raw = &value;"}},
    {"dereference", "dereference", {.body = "value = @*&value;"}},
    {"index_of_address", "dereference", {.body = "value = @(&value)[1];"}},
    {"arrow", "dereference", {.body = "value = (&counts)@->words[0];"}},
    {"decaying_array", "array-decay", {.body = "const auto raw = @counts.words + 1;"}},
    {"decltype_auto", "pointer", {.vendor = "inline decltype(auto) @first(Counts& counts) { return &counts; }"}},
    {"conversion_operator_to_pointer", "pointer", {.vendor = "struct Sly { u32 word; @operator u32*() const { return {}; } };"}},
    {"lambda_as_function_pointer", "pointer", {.body = "auto* @call = +[](u32 x) { return x; };"}},
    {"explicit_this", "this", {.vendor = "struct Self { u32 word; u32 read() const { const auto& self = *@this; return self.word; } };"}},
    {"string_literal", "string", {.body = "value = static_cast<u32>(@\"secret\"[0]);"}},
    {"function_name", "string", {.body = "value = static_cast<u32>(@__func__[0]);"}},
    // --- members and functions by pointer ---
    {"pointer_to_member", "member-pointer", {.body = "u32 Counts::* @member = {};"}},
    {"pointer_to_private_member", "member-pointer", {.vendor = "template <u32 IsoPtr<u32>::*@Member> struct Rob {};"}},
    {"function_pointer", "pointer", {.vendor = "inline u32 one() { return 1; }", .body = "u32 (*@call)() = {};"}},
    {"function_as_value", "function-pointer", {.vendor = "inline u32 one() { return 1; }", .body = "const auto call = @one;"}},
    {"indirect_call", "indirect-call", {.vendor = "template <typename F> inline u32 run(F& call) { return @call(); } inline u32 one() { return 1; }", .body = "value = run(one);"}},
    // --- casts ---
    {"c_style_cast", "cast", {.body = "const auto raw = @(u32*)static_cast<u64>(value);"}},
    {"reinterpret_cast_of_number", "cast", {.body = "const auto raw = @reinterpret_cast<u32*>(u64{value});"}},
    {"reinterpret_cast_of_reference", "cast", {.body = "value = @reinterpret_cast<u32&>(counts);"}},
    {"c_style_cast_of_reference", "cast", {.body = "value = @(u32&)counts;"}},
    {"const_cast", "cast", {.body = "const u32 fixed = 1; @const_cast<u32&>(fixed) = value;"}},
    {"functional_cast", "cast", {.vendor = "using Raw = u32*;", .body = "const auto raw = @Raw(u64{value});"}},
    {"static_cast_from_void", "cast", {.body = "const auto raw = @static_cast<u32*>(static_cast<void*>(&value));"}},
    {"static_cast_down", "inheritance", {.vendor = "struct @Derived : Counts { u32 more; };", .body = "value = static_cast<Derived&>(counts).more;"}},
    {"crtp", "inheritance", {.vendor = "template <typename D> struct Crtp { u32 read() { return static_cast<D&>(*this).word; } }; struct @Own : Crtp<Own> { u32 word; };"}},
    {"compound_literal", "compound-literal", {.body = "value = @(Counts){}.words[0];"}},
    // --- casts that take `const` away, and other names of what an index relies on ---
    {"const_lost_to_c_style_cast", "cast", {.body = "const u32 at = value % 4; @(u32&)at = value; counts.words[at] = 1;"}},
    {"const_lost_to_functional_cast", "cast", {.vendor = "using Word = u32&;", .body = "const u32 at = value % 4; (@Word(at)) = value; counts.words[at] = 1;"}},
    {"const_lost_to_cast_in_template", "cast", {.vendor = "template <typename T> inline void change(u32 const& at, u32 value) { (@T(at)) = value; }", .body = "const u32 at = value % 4; change<u32&>(at, value); counts.words[at] = 1;"}},
    {"const_lost_to_cast_to_rvalue", "cast", {.vendor = "inline void change(u32&& at, u32 value) { at = value; }", .body = "const u32 at = value % 4; change(@(u32&&)at, value); counts.words[at] = 1;"}},
    {"const_lost_in_lambda", "cast", {.body = "const u32 at = value % 4; const auto change = [&] { @(u32&)at = value; }; change(); counts.words[at] = 1;"}},
    {"const_lost_to_cast_of_struct", "cast", {.vendor = "struct Fixed { u32 at; };", .body = "const Fixed fixed{value % 4}; (@(Fixed&)fixed).at = value; counts.words[fixed.at % 4] = 1;"}},
    {"const_lost_of_loop_bound", "cast", {.body = "const u32 end = 4; for (u32 i = 0; i < end; ++i) { counts.words[i] = 1; @(u32&)end = value; }"}},
    {"const_lost_to_declared_alias", "cast", {.body = "const u32 at = value % 4; auto& other = @(u32&)at; other = value; counts.words[at] = 1;"}},
    {"static_cast_to_reference", "cast", {.body = "@static_cast<u32&>(value) = 7;"}},
    {"static_cast_to_rvalue", "cast", {.body = "const Counts other = @static_cast<Counts&&>(counts); value = other.words[0];"}},
    {"cast_to_reference_of_const", "cast", {.body = "value = @(u32 const&)value + 1;"}},
    {"index_that_a_reference_has", "index", {.body = "const u32 at = value % 4; u32 const& same = at; counts.words[@at] = same;"}},
    {"index_that_a_parameter_has", "index", {.vendor = "inline u32 same(u32 const& at) { return at; }", .body = "const u32 at = value % 4; counts.words[@at] = same(at);"}},
    {"index_that_a_template_has", "index", {.body = "const auto same = [](auto const& at) { return at; }; const u32 at = value % 4; counts.words[@at] = same(at);"}},
    {"index_that_a_lambda_has", "index", {.body = "const u32 at = value % 4; const auto same = [&] { return at; }; counts.words[@at] = same();"}},
    {"index_that_a_named_capture_has", "index", {.body = "const u32 at = value % 4; const auto same = [&other = at] { return other; }; counts.words[@at] = same();"}},
    {"index_that_a_chosen_reference_has", "index", {.body = "const u32 at = value % 4; const u32 zero = 0; u32 const& same = value > 7 ? at : zero; counts.words[@at] = same;"}},
    {"index_of_constant_that_a_reference_has", "index", {.body = "const u32 at = 3; u32 const& same = at; counts.words[@at] = same;"}},
    {"index_of_constants_that_a_reference_has", "index", {.body = "const u32 at = 1; u32 const& same = at; const u32 next = at + 1; counts.words[@next] = same;"}},
    {"loop_bound_that_a_reference_has", "index", {.body = "const u32 end = value % 5; u32 const& same = end; for (u32 i = 0; i < end; ++i) { counts.words[@i] = same; }"}},
    {"loop_step_that_a_reference_has", "index", {.body = "const u32 step = value % 2 + 1; u32 const& same = step; for (u32 i = 0; i < 4; i += step) { counts.words[@i] = same; }"}},
    {"index_of_changed_copy", "index", {.body = "const u32 at = value % 4; auto change = [at = at + 0](u32 x) mutable { at = x; return at; }; counts.words[@change(value)] = 1;"}},
    {"index_by_const_reference_to_variable", "index", {.body = "u32 const& at = value; counts.words[@at] = 1;"}},
    {"index_by_const_member", "index", {.vendor = "struct Fixed { const u32 at = 1; };", .body = "const Fixed fixed{value}; counts.words[@fixed.at] = 1;"}},
    {"index_by_member_of_const", "index", {.vendor = "struct Fixed { u32 at = 1; };", .body = "const Fixed fixed{}; counts.words[@fixed.at] = 1;"}},
    {"index_by_element_of_const", "index", {.body = "const u32 at[1] = {value % 4}; counts.words[@at[0]] = 1;"}},
    {"index_by_const_parameter", "index", {.vendor = "inline u32 at(Counts const& counts, const u32 i) { const u32 j = i; return counts.words[@j]; }", .body = "value = at(counts, 9);"}},
    {"index_that_another_hides", "index", {.body = "const u32 at = value % 4; { const u32 at = value; counts.words[@at] = 1; } counts.words[at] = 1;"}},
    {"const_initialized_by_itself", "uninitialized", {.body = "const u32 @at = at % 4; counts.words[at] = 1;"}},
    {"const_initialized_by_lambda_of_itself", "uninitialized", {.body = "const u32 @at = [&] { return at % 4; }(); counts.words[at] = 1;"}},
    {"structured_binding_of_const", "structured-binding", {.vendor = "struct Two { u32 a; u32 b; };", .body = "const auto @[a, b] = Two{value % 4, 0}; counts.words[a] = b;"}},
    {"mutable_member", "mutable", {.vendor = "struct Open { mutable u32 @word; }; constexpr Open kOpen{0};", .body = "value = kOpen.word;"}},
    {"index_shifted_by_its_width", "index", {.body = "counts.words[@value >> 32] = 1;"}},
    {"index_shifted_beyond_its_width", "index", {.body = "counts.words[@value >> (32 + value % 8)] = 1;"}},
    {"index_of_constant_shifted_beyond_its_width", "index", {.body = "counts.words[@5U >> 34] = 1;"}},
    {"index_of_floats", "index", {.body = "const float a = 1.0000001f; counts.words[@static_cast<u32>((a * a - 1.0000002f) * 1e20f)] = 1;"}},
    {"index_of_floats_in_a_function", "index", {.vendor = "constexpr u32 at(float a) { return static_cast<u32>((a * a - 1.0000002f) * 1e20f); }", .body = "counts.words[@at(1.0000001f)] = 1;"}},
    {"index_of_constant_of_floats", "index", {.vendor = "constexpr u32 at(float a) { return static_cast<u32>((a * a - 1.0000002f) * 1e20f); }", .body = "const u32 first = at(1.0000001f); counts.words[@first] = 1;"}},
    {"index_by_enumeration_of_bool", "index", {.vendor = "enum class Flag : bool { kNo, kYes }; struct Held { Flag flag; }; struct Two { u32 words[2]; };", .body = "const Two two{}; value = two.words[@static_cast<u32>(ctx.state<Held>().flag)];"}},
    {"index_by_bool_of_enumeration", "index", {.vendor = "enum class Flag : bool { kNo, kYes }; struct Held { Flag flag; }; struct Two { u32 words[2]; };", .body = "const Two two{}; value = two.words[@static_cast<bool>(ctx.state<Held>().flag)];"}},
    {"index_into_array_without_a_name", "index", {.vendor = "using Words = u32[4];", .body = "value = Words{1, 2, 3, 4}[@value];"}},
    // --- memory that is read as something else ---
    {"union_of_types", "union", {.vendor = "@union Either { u64 number; u32 words[2]; };"}},
    {"anonymous_union", "union", {.vendor = "struct Both { @union { u64 number; u32 words[2]; }; };"}},
    {"iso_ptr_in_memory", "forged-handle", {.body = "const auto @forged = ctx.local<IsoPtr<u32>>(0, 1);"}},
    {"iso_ptr_of_iso_ptrs", "forged-handle", {.vendor = "inline u64 size(IsoPtr<IsoPtr<u32>> @of) { return of.size(); }"}},
    {"bytes_in_state", "forged-handle", {.vendor = "struct Sly { u64 pad; Bytes bytes; };", .body = "value = ctx.@state<Sly>().bytes.length();"}},
    {"fetched_in_state", "forged-handle", {.body = "value = ctx.@state<catena::kernel::Fetched<2>>()[5];"}},
    {"masked_bool_of_memory", "type", {.vendor = "struct Held { bool flag; }; struct Two { u32 words[2]; };", .body = "const Two two{}; value = two.words[static_cast<u32>(ctx.@state<Held>().flag) & 1U];"}},
    {"enumeration_of_bool_in_memory", "type", {.vendor = "enum class Flag : bool { kNo, kYes };", .body = "const auto @flags = ctx.local<Flag>(0, 4); table.set(1, static_cast<u32>(flags[0]));"}},
    {"pointer_in_aux", "pointer", {.vendor = "struct Aux { u8* @raw; };"}},
    {"builtin_copy", "builtin", {.body = "@__builtin_memcpy(&value, &counts, 4);"}},
    {"builtin_bit_cast", "builtin", {.body = "const auto forged = @__builtin_bit_cast(Counts, counts);"}},
    {"placement_new", "allocation", {.body = "@new (&value) u32(1);"}},
    {"delete_expression", "allocation", {.body = "@delete &value;"}},
    {"launder", "builtin", {.body = "value = *@__builtin_launder(&value);"}},
    // --- handles ---
    {"assigned_iso_ptr", "handle-assignment", {.body = "auto other = table; other @= ctx.local<u32>(4, 4);"}},
    {"assigned_struct_of_iso_ptr", "handle-assignment", {.vendor = "struct Held { IsoPtr<u32> at; };", .body = "Held held{table}; held @= Held{ctx.local<u32>(4, 4)};"}},
    {"made_iso_ptr", "private", {.body = "const IsoPtr<u32> @forged(nullptr, 1000, catena::kernel::kAddressState, {nullptr});"}},
    {"made_context", "private", {.body = "const Context @forged(ctx, 7);"}},
    {"private_member", "private", {.body = "value = static_cast<u32>(table.@count_);"}},
    {"kernel_entry", "framework-internal", {.body = "const auto forged = @catena::kernel::KernelEntry::context({}, {}, {}, {}, {}, {}, {}, 0);"}},
    {"own_fault_sink", "framework-internal", {.body = "const catena::kernel::FaultSink @sink{};"}},
    {"own_launch_params", "framework-internal", {.body = "catena::kernel::LaunchParams @params{};"}},
    {"raw_words_of_fetched", "framework-internal", {.body = "auto words = packet.frame().fetch<2>(0, 2); words.@words = 1000; value = words[999];"}},
    {"made_fetched", "handle-construction", {.body = "const catena::kernel::Fetched<2> words@{{1, 2, 3}, 0, 1000}; value = words[999];"}},
    {"made_fetched_without_its_braces", "handle-construction", {.vendor = "struct Held { catena::kernel::Fetched<2> words; };", .body = "const Held held{@1, 2, 3, 0, 1000}; value = held.words[999];"}},
    {"made_array_of_fetched_without_braces", "handle-construction", {.body = "const catena::kernel::Fetched<2> many[1]{@1, 2, 3, 0, 1000}; value = many[0][999];"}},
    {"made_fetched_by_designator", "handle-construction", {.vendor = "struct Held { catena::kernel::Fetched<2> words; };", .body = "const Held held{.words@.words = 1000}; value = held.words[999];"}},
    {"made_fetched_in_template", "handle-construction", {.vendor = "template <typename T> inline u32 make() { const T words@{{1, 2, 3}, 0, 1000}; return words[999]; }", .body = "value = make<catena::kernel::Fetched<2>>();"}},
    {"fetched_without_room", "compile", {.body = "value = packet.frame().@fetch<0xFFFFFFFFU>(0, 100)[0];"}},
    {"word_of_fetched_without_room", "compile", {.body = "const catena::kernel::Fetched<0xFFFFFFFFU> @words{}; value = words.word(value >> 1);"}},
    {"put_of_bytes_that_wrap", "compile", {.vendor = "constexpr u32 kHuge[0x40000001]{};", .body = "packet.frame().@put<0x40000001U>(0, kHuge);"}},
    {"unchecked_word", "index", {.body = "const auto words = packet.frame().fetch<2>(0, 2); value = words.word(@value);"}},
    {"framework_detail", "framework-internal", {.body = "value = @catena::kernel::detail::swap(value);"}},
    {"frames_that_the_plan_lacks", "explicit-argument", {.body = "value = packet.@payload<1>().length();"}},
    {"layers_that_the_plan_lacks", "explicit-argument", {.body = "value = packet.@layers<~0UL>().flags;"}},
    {"atomic_on_address", "framework-internal", {.body = "value = @catena::kernel::atomic_add(&value, 1);"}},
    {"result_outlives_context", "context-lifetime", {.vendor = "inline IsoPtr<u32> @stray(Context const& ctx) { const Context own = ctx.for_group_packet(1); return own.local<u32>(0, 4); }"}},
    {"temporary_context", "context-lifetime", {.vendor = "inline IsoPtr<u32> pass(Context const& ctx) { return ctx.local<u32>(0, 4); }", .body = "const auto stray = pass(ctx.@for_group_packet(1));"}},
    {"context_as_member", "context-lifetime", {.vendor = "struct Kept { Context @context; };"}},
    {"explicit_destructor", "destructor-call", {.body = "const auto own = ctx.for_group_packet(1); own.@~Context();"}},
    {"derived_iso_ptr", "inheritance", {.vendor = "struct @Mine : IsoPtr<u32> {};"}},
    {"derived_context", "inheritance", {.vendor = "struct @Mine : Context {};"}},
    {"lookups_of_its_own", "handle-construction", {.body = "IsoPtr<u32>::Lookups @walk(table); value = walk[1];"}},
    {"assigned_bytes", "handle-assignment", {.body = "auto frame = packet.frame(); frame @= frame.from(1);"}},
    {"lambda_result_outlives_context", "context-lifetime", {.body = "const auto stray = @[&] { const auto own = ctx.for_group_packet(1); return own.local<u32>(0, 4); }(); value = stray[0];"}},
    {"context_by_value_outlived", "context-lifetime", {.vendor = "inline IsoPtr<u32> @stray(Context own) { return own.local<u32>(0, 4); }"}},
    // --- handles that have no value yet ---
    {"member_made_by_function_of_a_later_one", "uninitialized", {.vendor = "struct Pair { IsoPtr<u32> a; IsoPtr<u32> b; explicit Pair(IsoPtr<u32> x) : a(@later()), b(x) {} IsoPtr<u32> later() const { return b; } };", .body = "const Pair pair(table); value = pair.a[0];"}},
    {"member_made_of_a_later_one_by_default", "uninitialized", {.vendor = "struct Pair { IsoPtr<u32> a = @b; IsoPtr<u32> b; };", .body = "const Pair pair{.b = table}; value = pair.a[0];"}},
    {"member_made_by_lambda_of_a_later_one", "uninitialized", {.vendor = "struct Pair { IsoPtr<u32> a; IsoPtr<u32> b; explicit Pair(IsoPtr<u32> x) : a([this] { return @b; }()), b(x) {} };", .body = "const Pair pair(table); value = pair.a[0];"}},
    {"member_made_of_a_later_one_in_template", "uninitialized", {.vendor = "template <typename T> struct Pair { T a; T b; explicit Pair(T x) : a(@later()), b(x) {} T later() const { return b; } };", .body = "const Pair<IsoPtr<u32>> pair(table); value = pair.a[0];"}},
    {"object_made_by_function_of_its_own", "uninitialized", {.vendor = "struct Pair { IsoPtr<u32> a; IsoPtr<u32> b; Pair(IsoPtr<u32> x, IsoPtr<u32> y) : a(x), b(y) {} explicit Pair(IsoPtr<u32> x) : Pair(@later(), x) {} IsoPtr<u32> later() const { return b; } };", .body = "const Pair pair(table); value = pair.a[0];"}},
    {"result_that_a_switch_leaves_out", "no-result", {.vendor = "enum class Kind : u32 { kOne }; inline IsoPtr<u32> @pick(Kind kind, IsoPtr<u32> table) { switch (kind) { case Kind::kOne: return table; } }", .body = "value = pick(static_cast<Kind>(value), table)[0];"}},
    {"result_that_a_condition_of_floats_leaves_out", "no-result", {.vendor = "inline IsoPtr<u32> @pick(IsoPtr<u32> table) { const float a = 1.0000001f; if (a * a - 1.0000002f == 0.0f) { return table; } }", .body = "value = pick(table)[0];"}},
    {"result_that_a_switch_in_a_lambda_leaves_out", "no-result", {.vendor = "enum class Kind : u32 { kOne };", .body = "const auto pick = @[&](Kind kind) { switch (kind) { case Kind::kOne: return table; } }; value = pick(static_cast<Kind>(value))[0];"}},
    // --- the framework's names ---
    {"private_public", "directive", {.first = "@#define private public"}},
    {"class_struct", "directive", {.first = "@#define class struct"}},
    {"redefined_framework_macro", "directive", {.first = "@#define CATENA_UNROLL return;"}},
    {"removed_framework_macro", "directive", {.global = "@#undef CATENA_KERNEL_ENTRY"}},
    {"switched_off_checks", "directive", {.first = "@#define kChecked kNever = true; inline constexpr bool kChecked2"}},
    {"specialised_iso_ptr", "framework-namespace", {.global = "template <> class catena::kernel::@IsoPtr<float> { public: int x; };"}},
    {"specialised_trait", "framework-namespace", {.global = "namespace catena::kernel::detail { template <> struct @IsPointer<int*> { static constexpr bool kValue = false; }; }"}},
    {"specialised_member", "framework-namespace", {.global = "template <> inline float catena::kernel::IsoPtr<float>::@operator[](catena::u64 i) const { return 0; }"}},
    {"injected_friend", "framework-namespace", {.first = "namespace catena::kernel { struct @KernelEntry; }"}},
    {"friend_declaration", "friend", {.vendor = "class Open { @friend struct Other; u32 word; };"}},
    {"class_in_namespace_catena", "framework-namespace", {.global = "namespace catena { struct @Extra { int x; }; }"}},
    {"shadowed_builtin_of_opencl", "global-name", {.first = "inline unsigned long @get_global_id(int dimension) { return 1; }"}},
    {"shadow_by_inline_namespace", "namespace", {.first = "inline namespace @sly { inline unsigned long get_global_id(int d) { return 1; } }"}},
    {"shadow_by_unnamed_namespace", "namespace", {.first = "namespace @{ inline unsigned long get_global_id(int d) { return 1; } }"}},
    {"shadow_by_using", "using-directive", {.first = "namespace sly { inline unsigned long get_global_id(int d) { return 1; } } using namespace @sly;"}},
    {"header_in_a_namespace", "include", {.first = "namespace @sly {\n#include <catena/kernel/context.hpp>\n}"}},
    {"explicit_instantiation", "explicit-instantiation", {.vendor = "template <typename T> struct Rob { T word; }; @template struct Rob<u32>;"}},
    // --- the preprocessor ---
    {"macro_with_pointer", "directive", {.vendor = "@#define RAW(type) type*"}},
    {"token_pasting", "directive", {.vendor = "@#define PASTE(a, b) a##b"}},
    {"hidden_from_one_compiler", "directive", {.vendor = "@#ifdef __CUDACC_RTC__\ninline u32* find() { return nullptr; }\n#endif"}},
    {"has_include", "directive", {.first = "@#if __has_include(\"/etc/passwd\")\n#endif"}},
    {"include_of_the_machine", "include", {.first = "@#include \"/etc/passwd\""}},
    {"include_of_a_parent", "include", {.first = "@#include \"../../../etc/passwd\""}},
    {"include_of_the_compiler", "include", {.first = "@#include <opencl-c.h>"}},
    {"include_of_the_standard", "include", {.first = "@#include <cstring>"}},
    {"include_of_macro", "include", {.first = "@#include __FILE__"}},
    {"include_next", "directive", {.first = "@#include_next <catena/kernel/context.hpp>"}},
    {"embed", "directive", {.vendor = "@#embed \"/etc/passwd\""}},
    {"line_directive", "directive", {.vendor = "@#line 1 \"catena/kernel/context.hpp\""}},
    {"line_marker", "directive", {.vendor = "@# 1 \"catena/kernel/context.hpp\" 3"}},
    {"directive_that_ends_in_once", "directive", {.vendor = "@#undef once"}},
    {"pragma", "directive", {.vendor = "@#pragma OPENCL EXTENSION all : enable"}},
    {"pragma_operator", "directive", {.vendor = "@_Pragma(\"clang optimize off\")"}},
    {"predefined_macro", "macro", {.body = "value += @__LINE__;"}},
    {"counter_macro", "macro", {.body = "value += @__COUNTER__;"}},
    {"entry_macro", "macro", {.global = "@CATENA_KERNEL_ENTRY(other)"}},
    {"two_names_for_a_kernel", "macro", {.global = "@CATENA_KERNEL(other(int x) {} void more) {}"}},
    {"digraph", "digraph", {.body = "value = counts.words@<:0:>;"}},
    {"digraph_directive", "digraph", {.vendor = "@%:define RAW u32*"}},
    {"trigraph", "trigraph", {.vendor = "@?\?=define RAW u32*"}},
    {"line_splice", "line-splice", {.vendor = "// harmless @\\\nthis line is a comment, too\n"}},
    {"unicode_name", "character", {.body = "const u32 @v\xC3\xA4lue = 1;"}},
    {"unicode_escape", "character", {.body = "const u32 @v\\u00e4lue = 1;"}},
    {"turned_text", "character", {.vendor = "/* @\xE2\x80\xAE harmless */"}},
    {"raw_string", "raw-string", {.vendor = "static_assert(true, @R\"(\n)\");"}},
    // --- instructions, attributes ---
    {"inline_ptx", "asm", {.body = "@asm(\"ld.global.u32 %0, [%1];\" : \"=r\"(value) : \"l\"(u64{1}));"}},
    {"inline_ptx_in_macro", "directive", {.vendor = "@#define LOAD(x) __asm__ volatile(\"mov.u32 %0, 1;\" : \"=r\"(x))", .body = "LOAD(value);"}},
    {"asm_at_file_scope", "asm", {.vendor = "@__asm(\".global evil\");"}},
    {"asm_label", "asm", {.vendor = "inline u32 stolen() @asm(\"base_body\");"}},
    {"attribute_annotate", "attribute", {.body = "@__attribute__((annotate(\"x\"))) u32 marked = 1;"}},
    {"attribute_section", "attribute", {.vendor = "@__attribute__((section(\".text\"))) inline u32 placed() { return 1; }"}},
    {"attribute_constructor", "attribute", {.vendor = "@__attribute__((constructor)) inline void early() {}"}},
    {"attribute_address_space", "attribute", {.body = "u32 @__attribute__((address_space(1))) placed = 1;"}},
    {"attribute_in_brackets", "attribute", {.vendor = "[[@gnu::alias(\"base_body\")]] u32 other();"}},
    {"attribute_noreturn", "attribute", {.vendor = "[[@noreturn]] inline void gone() { for (u32 i = 0; i < 2; ++i) {} }"}},
    {"attribute_of_statement", "attribute", {.vendor = "inline u32 last(Counts& counts) { return counts.words[0]; } inline u32 first(Counts& counts) { Counts own{}; [[@clang::musttail]] return last(own); }", .body = "value = first(counts);"}},
    {"attribute_of_lambda", "attribute", {.body = "const auto one = [] [[@gnu::cold]] () { return 1U; }; value = one();"}},
    {"attribute_of_type", "attribute", {.body = "u32 [[@clang::annotate_type(\"x\")]] marked = 1;"}},
    {"alignas_beyond_memory", "attribute", {.vendor = "struct @alignas(64) Wide { u32 word; };"}},
    {"address_space_of_opencl", "address-space", {.body = "const @__local u32* shared{};"}},
    {"shared_variable_of_cuda", "address-space", {.vendor = "@__shared__ u32 words[4];"}},
    {"typeof", "reserved-name", {.body = "@__typeof__(&value) raw{};"}},
    {"own_reserved_name", "reserved-name", {.body = "const u32 @_Hidden = 1;"}},
    {"volatile_variable", "volatile", {.body = "@volatile u32 spied = 1;"}},
    {"builtin_unreachable", "builtin", {.body = "if (value > 3) { @__builtin_unreachable(); }"}},
    {"builtin_assume", "builtin", {.body = "@__builtin_assume(value < 4);"}},
    {"builtin_trap", "builtin", {.body = "@__builtin_trap();"}},
    {"function_of_opencl", "builtin", {.body = "value = @get_global_id(0);"}},
    {"function_of_cuda", "framework-internal", {.body = "@atomicAdd({}, 1);"}},
    {"vector_of_opencl", "type", {.body = "uint4 @wide{};"}},
    {"own_entry_of_opencl", "pointer", {.first = "kernel void entry(global int* @raw) {}"}},
    {"block_of_opencl", "construct", {.body = "const auto call = @^(u32 x) { return x; };"}},
    {"variable_of_cuda", "framework-internal", {.body = "value = @threadIdx.x;"}},
    // --- flow ---
    {"recursion", "recursion", {.vendor = "inline u32 down(u32 n) { return n == 0 ? 0 : @down(n - 1); }", .body = "value = down(value);"}},
    {"recursion_of_two", "recursion", {.vendor = "inline u32 odd(u32 n); inline u32 even(u32 n) { return n == 0 ? 1 : odd(n - 1); } inline u32 odd(u32 n) { return n == 0 ? 0 : @even(n - 1); }", .body = "value = even(value);"}},
    {"recursion_by_lambda", "recursion", {.body = "const auto down = [](auto self, u32 n) -> u32 { return n == 0 ? 0 : @self(self, n - 1); }; value = down(down, value);"}},
    {"recursion_by_initialiser", "recursion", {.vendor = "struct Again { u32 word; u32 more = make(); static u32 make() { return Again@{1}.more; } };", .body = "value = Again{1}.more;"}},
    {"recursion_by_operator", "recursion", {.vendor = "struct Plus { u32 word; }; inline Plus operator+(Plus a, Plus b) { return b.word == 0 ? a : a @+ b; }"}},
    {"recursion_by_copy", "recursion", {.vendor = "struct Again { u32 word; explicit Again(u32 n) : word(n) {} Again(Again const& other); }; struct Held { Again again; }; inline u32 down(Held const& held) { if (held.again.word == 0) { return 0; } const Held copy = @held; return copy.again.word; } inline Again::Again(Again const& other) : word(down(Held{Again(other.word - 1)})) {}", .body = "value = down(Held{Again(value)});"}},
    {"recursion_by_assignment", "recursion", {.vendor = "struct Again { u32 word; void operator=(Again const& other); }; struct Held { Again again; }; inline u32 down(u32 n) { Held held{}; if (n != 0) { held = Held{Again{n}}; } return held.again.word; } inline void Again::operator=(Again const& other) { word = @down(other.word - 1); }", .body = "value = down(value);"}},
    {"recursion_by_member_that_makes_itself", "recursion", {.vendor = "struct Again { u32 word; Again(); }; struct Held { Again again; }; inline u32 make() { Held @held; return held.again.word; } inline Again::Again() : word(make()) {}", .body = "value = make();"}},
    {"recursion_by_member_of_constructor", "recursion", {.vendor = "struct Again { u32 word; Again(); }; struct Held { Again again; explicit Held(u32 n) {} }; inline u32 make(u32 n) { const Held @held(n); return held.again.word; } inline Again::Again() : word(make(1)) {}", .body = "value = make(value);"}},
    {"recursion_by_conversion_in_braces", "recursion", {.vendor = "struct Again { u32 word; Again(u32 n); }; struct Held { Again again; }; inline u32 down(u32 n) { const Held held{n}; return held.again.word; } inline Again::Again(u32 n) : word(n == 0 ? 0 : @down(n - 1)) {}", .body = "value = down(value);"}},
    {"recursion_by_capture", "recursion", {.vendor = "struct Again { u32 word; explicit Again(u32 n) : word(n) {} Again(Again const& other); }; inline u32 down(u32 n) { const Again own(n); const auto read = [=] { return own.word; }; return read(); } inline Again::Again(Again const& other) : word(other.word == 0 ? 0 : @down(other.word - 1)) {}", .body = "value = down(value);"}},
    {"goto_statement", "goto", {.body = "@goto out; out: value = 1;"}},
    {"computed_goto", "goto", {.body = "out: @goto *&&out;"}},
    {"exception", "exceptions", {.body = "@throw value;"}},
    {"try_block", "exceptions", {.body = "@try { value = 1; } catch (...) {}"}},
    {"rtti", "exceptions", {.body = "value = @typeid(value) == typeid(u32) ? 1 : 0;"}},
    {"virtual_function", "virtual", {.vendor = "struct Open { @virtual u32 read() { return 1; } };"}},
    {"statement_expression", "statement-expression", {.body = "value = @({ u32 x = 1; x; });"}},
    {"range_for", "range-for", {.body = "@for (const u32 word : counts.words) { value += word; }"}},
    {"comma", "comma", {.body = "value = (counts.words[0] = 1@, value);"}},
    {"counter_in_its_own_condition", "index", {.body = "u32 leak = 0; for (u64 i = 0; i < (leak = counts.words[@i]) % 4 + 1; i += value % 7 + 1) { value += leak; }"}},
    {"counter_written_with_in_its_own_condition", "index", {.body = "for (u64 i = 0; i < (counts.words[@i] = value) % 4 + 1; i += value % 7 + 1) {}"}},
    {"counter_behind_two_conditions", "index", {.body = "for (u64 i = 0; i < (counts.words[@i] = value) % 4 + 1 && value != 7; i += value % 7 + 1) {}"}},
    {"floating_point_number_cast", "cast", {.body = "const float f = 1e20f; value = static_cast<u32>(@f);"}},
    {"floating_point_number_converted", "cast", {.body = "const float f = 1e20f; value = @f;"}},
    {"barrier_under_a_condition", "barrier", {.vendor = "inline void wait(u32 v) { if (v < 4) { @catena::kernel::barrier_all(); } }", .body = "wait(value);"}},
    {"barrier_behind_a_choice", "barrier", {.vendor = "inline u32 one() { catena::kernel::barrier_all(); return 1; } inline u32 wait(u32 v) { return v == 0 ? 0 : @one(); }", .body = "wait(value);"}},
    {"barrier_behind_an_and", "barrier", {.vendor = "inline bool one() { catena::kernel::barrier_all(); return true; } inline bool wait(u32 v) { return v == 0 && @one(); }", .body = "wait(value);"}},
    {"barrier_in_a_function_under_a_condition", "barrier", {.vendor = "inline void one() { catena::kernel::barrier_all(); } inline void two() { one(); } inline void wait(u32 v) { if (v != 0) { @two(); } }", .body = "wait(value);"}},
    {"barrier_behind_a_return", "barrier", {.vendor = "inline u32 wait(u32 v) { if (v == 0) { return 0; } @catena::kernel::barrier_all(); return 1; }", .body = "wait(value);"}},
    {"barrier_in_a_lambda", "barrier", {.vendor = "inline void wait(u32 v) { const auto one = [] { @catena::kernel::barrier_all(); }; one(); }", .body = "wait(value);"}},
    {"barrier_in_a_loop_of_any_turns", "barrier", {.vendor = "inline void wait(u32 v) { for (u32 i = 0; i < v; ++i) { @catena::kernel::barrier_all(); } }", .body = "wait(value);"}},
    {"barrier_in_a_loop_that_some_leave", "barrier", {.vendor = "inline void wait(u32 v) { for (u32 i = 0; i < 4; ++i) { if (v == i) { break; } @catena::kernel::barrier_all(); } }", .body = "wait(value);"}},
    {"barrier_in_a_loop_with_another_counter", "barrier", {.vendor = "inline void wait(u32 v) { u32 k = v; for (u32 i = 0; k < 4; ++k) { @catena::kernel::barrier_all(); } }", .body = "wait(value);"}},
    {"barrier_in_a_switch", "barrier", {.vendor = "inline void wait(u32 v) { switch (v) { case 1: @catena::kernel::barrier_all(); break; default: break; } }", .body = "wait(value);"}},
    {"barrier_in_a_constructor", "barrier", {.vendor = "struct Waits { u32 v = 0; Waits() { @catena::kernel::barrier_all(); } }; inline void wait(u32 v) { const Waits waits; }", .body = "wait(value);"}},
    {"barrier_in_an_initialiser", "barrier", {.vendor = "inline u32 one() { catena::kernel::barrier_all(); return 1; } struct Waits { u32 v = @one(); }; inline void wait(u32 v) { const Waits waits{}; }", .body = "wait(value);"}},
    {"large_default_argument_twice", "local-storage", {.vendor = "struct Large { u32 words[600]{}; }; inline u32 fill(u32 v, Large&& large = @Large{}) { return v + large.words[0]; }", .body = "value = fill(value); value = fill(value);"}},
    {"large_argument_by_value_twice", "local-storage", {.vendor = "struct Large { u32 words[600]{}; }; inline u32 fill(Large large, u32 v) { return v + large.words[0]; }", .body = "value = fill(Large{}, value); value = fill(@Large{}, value);"}},
    {"endless_loop", "endless-loop", {.body = "@for (;;) {}"}},
    {"loop_that_hides_a_check", "endless-loop", {.body = "@while (value >= 16) {} value = table[value];"}},
    {"coroutine", "keyword", {.vendor = "inline u32 later() { @co_return 1; }"}},
    {"variadic", "variadic", {.vendor = "inline u32 @any(u32 first, ...) { return first; }"}},
    {"destructor", "destructor", {.vendor = "struct Late { u32 word; @~Late() {} };"}},
    {"missing_return", "compile", {.vendor = "inline u32 falls(u32 n) { if (n == 0) { return 1; } @}"}},
    // --- storage ---
    {"index_of_local_array", "index", {.body = "counts.words[@value] = 1;"}},
    {"index_one_too_far", "index", {.body = "for (u32 i = 0; i <= 4; ++i) { counts.words[@i] = 1; }"}},
    {"index_that_the_loop_changes", "index", {.body = "for (u32 i = 0; i < 4; ++i) { counts.words[@i] = 1; i += value; }"}},
    {"index_below_zero", "index", {.body = "for (i32 i = 0; i < 4; ++i) { counts.words[@i - 1] = 1; }"}},
    {"index_by_default_argument", "index", {.vendor = "inline u32 at(Counts const& counts, const u32 i = 0) { return counts.words[@i]; }", .body = "value = at(counts, value);"}},
    {"index_that_the_condition_changes", "index", {.body = "for (u32 i = 0; i < 4 && (i += value) != 7; ++i) { counts.words[@i] = 1; }"}},
    {"index_by_reference_to_counter", "index", {.body = "for (u32 i = 0; i < 4; ++i) { u32& other = i; other += value; counts.words[@i] = 1; }"}},
    {"index_by_lambda_with_counter", "index", {.body = "for (u32 i = 0; i < 4; ++i) { const auto more = [&] { i += value; }; more(); counts.words[@i] = 1; }"}},
    {"index_that_wraps", "index", {.body = "for (u32 i = 1; i <= 0xFFFFFFFF; ++i) { counts.words[@3 / i] = 1; }"}},
    {"index_of_signed_remainder", "index", {.body = "counts.words[@static_cast<i32>(value) % 4] = 1;"}},
    {"jump_over_a_counter", "compile", {.body = "switch (value) { for (u32 i = 0; i < 4; ++i) { @case 1: counts.words[i] = 1; } }"}},
    {"index_in_template", "index", {.vendor = "template <u32 N> inline u32 at(Counts const& counts) { return counts.words[@N]; }", .body = "value = at<4>(counts);"}},
    {"index_by_bool_of_memory", "index", {.vendor = "struct Flag { bool flag; }; struct Two { u32 words[2]; };", .body = "const Two two{}; value = two.words[@ctx.state<Flag>().flag];"}},
    {"index_in_lambda", "index", {.body = "for (u32 i = 0; i < 4; ++i) { auto later = [i]() mutable { i += 8; return i; }; counts.words[@i + later()] = 1; }"}},
    {"uninitialized_variable", "uninitialized", {.body = "u32 @stale; value = stale;"}},
    {"uninitialized_array", "uninitialized", {.body = "u32 @stale[4]; value = stale[0];"}},
    {"uninitialized_struct", "uninitialized", {.body = "Counts @stale; value = stale.words[0];"}},
    {"uninitialized_member", "uninitialized", {.vendor = "struct Part { u32 a; u32 b; explicit @Part(u32 x) : a(x) {} };", .body = "value = Part(1).b;"}},
    {"initialized_by_itself", "uninitialized", {.body = "u32 @stale = stale + 1; value = stale;"}},
    {"large_array", "local-storage", {.body = "u32 @large[2000]{}; value = large[7];"}},
    {"large_arrays_together", "local-storage", {.body = "u32 a[600]{}; u32 @b[600]{}; value = a[7] + b[7];"}},
    {"large_element", "local-storage", {.vendor = "struct Large { u32 words[100000]; };", .body = "value = @ctx.local<Large>(0, 1)[0].words[7];"}},
    {"large_temporary", "local-storage", {.vendor = "struct Large { u32 words[100000]; };", .body = "value = @Large{}.words[7];"}},
    {"large_result", "local-storage", {.vendor = "struct Large { u32 words[100000]; }; inline Large make() { return Large{}; }", .body = "value = @make().words[7];"}},
    {"large_result_that_is_dropped", "local-storage", {.vendor = "struct Large { u32 words[100000]; }; inline Large make() { return Large{}; }", .body = "@make();"}},
    {"temporaries_that_are_large_together", "local-storage", {.vendor = "struct Half { u32 words[400]; };", .body = "value += Half{}.words[1] + Half{}.words[2] + @Half{}.words[3];"}},
    {"functions_that_are_large_together", "local-storage", {.vendor = "template <u32 N> inline u32 deep(u32 x) { u32 own[1000]{}; own[x % 1000] = x; if constexpr (N != 0) { x += @deep<N - 1>(x); } return own[7] + x; }", .body = "value = deep<64>(value);"}},
    {"variable_length_array", "array", {.body = "u32 @sized[value];"}},
    {"static_variable", "static-storage", {.body = "static u32 @kept = 1;"}},
    {"global_variable", "static-storage", {.vendor = "inline u32 @kept = 1;"}},
    {"thread_local_variable", "static-storage", {.vendor = "@thread_local u32 kept = 1;"}},
    {"extern_variable", "static-storage", {.vendor = "@extern u32 kept;"}},
    {"bit_field", "bit-field", {.vendor = "struct Packed { u32 @low : 4; };"}},
    // --- references ---
    {"reference_result", "reference", {.vendor = "inline u32& @first(Counts& counts) { return counts.words[0]; }"}},
    {"reference_member", "reference", {.vendor = "struct Alias { u32& @word; };"}},
    {"lambda_that_leaves_with_references", "reference", {.vendor = "inline auto @later(u32 x) { return [&x] { return x; }; }", .body = "value = later(value)();"}},
    {"reference_to_assigned_temporary", "reference", {.body = "Counts& @stale = Counts{} = counts; value = stale.words[0];"}},
    {"structured_binding", "structured-binding", {.vendor = "struct Two { u32 a; u32 b; };", .body = "Two two{}; auto& @[a, b] = two; a = b;"}},
    {"reference_member_by_template", "reference", {.vendor = "template <typename T> struct Held { T @word; };", .body = "const Held<u32&> held{value}; value = held.word;"}},
    {"reference_result_by_decltype_auto", "reference", {.vendor = "inline decltype(auto) @first(Counts& counts) { return (counts.words[0]); }"}},
    // --- operators ---
    {"address_of_operator", "operator", {.vendor = "struct Sly { u32 word; u32 @operator&() const { return word; } };"}},
    {"arrow_operator", "operator", {.vendor = "struct Sly { u32 word; Sly const* @operator->() const; };"}},
    {"comma_operator", "operator", {.vendor = "struct Sly { u32 word; }; inline u32 @operator,(Sly a, Sly b) { return a.word; }"}},
    {"user_defined_literal", "literal-operator", {.vendor = "constexpr u32 @operator\"\" _k(unsigned long long n) { return static_cast<u32>(n); }"}},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(StaticCheck, Escapes, ::testing::ValuesIn(kEscapes),
                         [](::testing::TestParamInfo<Escape> const& escape) { return std::string(escape.param.name); });

}  // namespace
}  // namespace catena::static_check
