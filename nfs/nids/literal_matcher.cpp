// SPDX-License-Identifier: Apache-2.0
#include "literal_matcher.hpp"

#include <fmt/format.h>
#include <hs.h>

#include <vector>

namespace catena::nids {
namespace {

int on_match(unsigned int pattern, unsigned long long, unsigned long long end, unsigned int, void* matches) {
  static_cast<MatchTable*>(matches)->add(pattern, static_cast<std::uint32_t>(end));
  return 0;
}

}  // namespace

void LiteralMatcher::FreeDatabase::operator()(hs_database* database) const { hs_free_database(database); }
void LiteralMatcher::FreeScratch::operator()(hs_scratch* scratch) const { hs_free_scratch(scratch); }

Result<LiteralMatcher> LiteralMatcher::create(std::span<const Pattern> patterns) {
  LiteralMatcher matcher;
  if (patterns.empty()) {
    return matcher;
  }
  if (hs_valid_platform() != HS_SUCCESS) {
    return absl::UnavailableError(fmt::format("{} does not run on this processor: it needs SSSE3", hs_version()));
  }
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  std::vector<unsigned> flags;
  std::vector<unsigned> numbers;
  for (std::size_t number = 0; number < patterns.size(); ++number) {
    texts.push_back(patterns[number].bytes.data());
    lengths.push_back(patterns[number].bytes.size());
    flags.push_back(patterns[number].nocase ? HS_FLAG_CASELESS : 0);
    numbers.push_back(static_cast<unsigned>(number));
  }
  hs_database* database = nullptr;
  hs_compile_error* problem = nullptr;
  if (hs_compile_lit_multi(texts.data(), flags.data(), numbers.data(), lengths.data(),
                           static_cast<unsigned>(patterns.size()), HS_MODE_BLOCK, nullptr, &database,
                           &problem) != HS_SUCCESS) {
    const std::string text = fmt::format("{} refuses the patterns: {}", hs_version(), problem->message);
    hs_free_compile_error(problem);
    return absl::InvalidArgumentError(text);
  }
  matcher.database_.reset(database);
  hs_scratch* scratch = nullptr;
  if (const hs_error_t error = hs_alloc_scratch(database, &scratch); error != HS_SUCCESS) {
    return absl::ResourceExhaustedError(fmt::format("{} gets no scratch memory (error {})", hs_version(), error));
  }
  matcher.scratch_.reset(scratch);
  return matcher;
}

void LiteralMatcher::scan(std::span<const std::uint8_t> payload, MatchTable& matches) {
  if (database_ == nullptr || payload.empty()) {
    return;
  }
  hs_scan(database_.get(), reinterpret_cast<const char*>(payload.data()), static_cast<unsigned>(payload.size()), 0,
          scratch_.get(), on_match, &matches);
}

}  // namespace catena::nids
