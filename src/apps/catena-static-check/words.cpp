// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace catena::checker {
namespace {

constexpr Rule kAsm{"asm", "an instruction reaches any memory; write it in the kernel dialect"};
constexpr Rule kGoto{"goto", "jumps leave the syntax known to the check; write a loop, or return"};
constexpr Rule kUnion{"union", "a union makes any value of any other; convert with static_cast and shifts"};
constexpr Rule kAllocation{"allocation", "kernels have no heap; use Context::local() or PacketView::spill()"};
constexpr Rule kExceptions{"exceptions", "devices have no exceptions and no RTTI; return a status value"};
constexpr Rule kVirtual{"virtual", "a virtual call goes through a pointer in memory; use a template"};
constexpr Rule kVolatile{"volatile", "it orders nothing between work-items; use IsoPtr::add() and barrier_all()"};
constexpr Rule kStatic{"static-storage",
                       "storage outliving the work-item is shared; use Context::local(), or constexpr"};
constexpr Rule kCast{"cast", "it changes the meaning of memory; a kernel needs only static_cast between numbers"};
constexpr Rule kFriend{"friend", "it opens a class to others; make the needed members public"};
constexpr Rule kAttribute{
    "attribute", "of attributes a kernel may have alignas, [[maybe_unused]], [[nodiscard]] and [[fallthrough]]"};
constexpr Rule kBuiltin{"builtin", "compiler built-ins differ and are unchecked; use catena/kernel/dialect.hpp"};
constexpr Rule kAddressSpace{"address-space", "IsoPtr knows where memory is; get it from Context or PacketView"};
constexpr Rule kDirective{"directive", "of the preprocessor's directives a kernel may have #include and #pragma once"};
constexpr Rule kKeyword{"keyword", "this part of C++ is not in the kernel dialect"};
constexpr Rule kReserved{"reserved-name",
                         "names with two underscores, or one and a capital, are the compiler's; rename it"};

constexpr auto kWords = std::to_array<std::pair<std::string_view, Rule const*>>({
    {"asm", &kAsm},
    {"__asm", &kAsm},
    {"__asm__", &kAsm},
    {"goto", &kGoto},
    {"union", &kUnion},
    {"new", &kAllocation},
    {"delete", &kAllocation},
    {"try", &kExceptions},
    {"catch", &kExceptions},
    {"throw", &kExceptions},
    {"typeid", &kExceptions},
    {"dynamic_cast", &kExceptions},
    {"virtual", &kVirtual},
    {"volatile", &kVolatile},
    {"__volatile__", &kVolatile},
    {"thread_local", &kStatic},
    {"__thread", &kStatic},
    {"extern", &kStatic},
    {"reinterpret_cast", &kCast},
    {"const_cast", &kCast},
    {"addrspace_cast", &kCast},
    {"friend", &kFriend},
    {"__attribute__", &kAttribute},
    {"__attribute", &kAttribute},
    {"__declspec", &kAttribute},
    {"_Pragma", &kDirective},
    {"__pragma", &kDirective},
    {"__global", &kAddressSpace},
    {"__local", &kAddressSpace},
    {"__private", &kAddressSpace},
    {"__constant", &kAddressSpace},
    {"__generic", &kAddressSpace},
    {"__kernel", &kAddressSpace},
    {"__shared__", &kAddressSpace},
    {"__device__", &kAddressSpace},
    {"__global__", &kAddressSpace},
    {"__constant__", &kAddressSpace},
    {"register", &kKeyword},
    {"export", &kKeyword},
    {"import", &kKeyword},
    {"module", &kKeyword},
    {"concept", &kKeyword},
    {"requires", &kKeyword},
    {"co_await", &kKeyword},
    {"co_yield", &kKeyword},
    {"co_return", &kKeyword},
    {"consteval", &kKeyword},
    {"constinit", &kKeyword},
});

constexpr auto kPrefixes = std::to_array<std::pair<std::string_view, Rule const*>>({
    {"__builtin", &kBuiltin},
    {"__sync", &kBuiltin},
    {"__atomic", &kBuiltin},
    {"__c11", &kBuiltin},
    {"__opencl", &kBuiltin},
    {"__nv", &kBuiltin},
});

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace

Rule const* rule_against(std::string_view word) {
  const auto* const found = std::ranges::find(
      kWords, word, [](std::pair<std::string_view, Rule const*> const& entry) { return entry.first; });
  if (found != kWords.end()) {
    return found->second;
  }
  for (auto const& [prefix, rule] : kPrefixes) {
    if (word.starts_with(prefix)) {
      return rule;
    }
  }
  const bool reserved =
      word.find("__") != std::string_view::npos || (word.size() > 1 && word[0] == '_' && is_capital(word[1]));
  return reserved ? &kReserved : nullptr;
}

}  // namespace catena::checker
