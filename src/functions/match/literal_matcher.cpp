// SPDX-License-Identifier: Apache-2.0
#include "functions/match/literal_matcher.hpp"

#include <fmt/format.h>
#include <hs.h>

#include <algorithm>
#include <exception>
#include <vector>

namespace catena::match {
namespace {

bool is_same(std::uint8_t byte, char wanted, bool nocase) {
  const bool upper = nocase && byte >= 'A' && byte <= 'Z';
  return static_cast<std::uint8_t>(upper ? byte - 'A' + 'a' : byte) == static_cast<std::uint8_t>(wanted);
}

}  // namespace

struct LiteralMatcher::Scan {
  std::span<const std::uint8_t> payload;
  std::span<const Head> heads;
  MatchTable* matches;
  std::exception_ptr thrown = {};
};

int LiteralMatcher::on_match(unsigned pattern, unsigned long long, unsigned long long end, unsigned, void* scan) {
  Scan& at = *static_cast<Scan*>(scan);
  Head const& head = at.heads[pattern];
  if (!head.bytes.empty()) {
    const std::size_t length = head.bytes.size() + kLibraryBytes;
    if (end < length ||
        !std::equal(head.bytes.begin(), head.bytes.end(), at.payload.data() + (end - length),
                    [&](char wanted, std::uint8_t byte) { return is_same(byte, wanted, head.nocase); })) {
      return 0;
    }
  }
  try {
    at.matches->add(pattern, static_cast<std::uint32_t>(end));
  } catch (...) {
    at.thrown = std::current_exception();  // not through the library, whose scratch memory would stay in use
    return 1;
  }
  return 0;
}

void LiteralMatcher::FreeDatabase::operator()(hs_database* database) const { hs_free_database(database); }
void LiteralMatcher::FreeScratch::operator()(hs_scratch* scratch) const { hs_free_scratch(scratch); }

Result<LiteralMatcher> LiteralMatcher::create(std::span<const Pattern> patterns) {
  Patterns compiled;
  if (!patterns.empty()) {
    CATENA_ASSIGN_OR_RETURN(compiled, compile(patterns));
  }
  return LiteralMatcher(std::make_shared<const Patterns>(std::move(compiled))).replicate();
}

Result<LiteralMatcher> LiteralMatcher::replicate() const {
  LiteralMatcher matcher(patterns_);
  if (patterns_->database == nullptr) {
    return matcher;
  }
  // not a clone of this one's, which may be in use
  hs_scratch* scratch = nullptr;
  if (const hs_error_t error = hs_alloc_scratch(patterns_->database.get(), &scratch); error != HS_SUCCESS) {
    return absl::ResourceExhaustedError(fmt::format("{} gets no scratch memory (error {})", hs_version(), error));
  }
  matcher.scratch_.reset(scratch);
  return matcher;
}

Result<LiteralMatcher::Patterns> LiteralMatcher::compile(std::span<const Pattern> patterns) {
  if (hs_valid_platform() != HS_SUCCESS) {
    return absl::UnavailableError(fmt::format("{} does not run on this processor: it needs SSSE3", hs_version()));
  }
  Patterns compiled;
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  std::vector<unsigned> flags;
  std::vector<unsigned> numbers;
  for (std::size_t number = 0; number < patterns.size(); ++number) {
    std::string const& bytes = patterns[number].bytes;
    const std::size_t head = bytes.size() - std::min(bytes.size(), kLibraryBytes);
    compiled.heads.push_back({bytes.substr(0, head), patterns[number].nocase});
    texts.push_back(bytes.data() + head);
    lengths.push_back(bytes.size() - head);
    flags.push_back(patterns[number].nocase ? HS_FLAG_CASELESS : 0);
    numbers.push_back(static_cast<unsigned>(number));
  }
  hs_database* database = nullptr;
  hs_compile_error* problem = nullptr;
  if (hs_compile_lit_multi(texts.data(), flags.data(), numbers.data(), lengths.data(),
                           static_cast<unsigned>(patterns.size()), HS_MODE_BLOCK, nullptr, &database,
                           &problem) != HS_SUCCESS) {
    const std::unique_ptr<hs_compile_error, decltype(&hs_free_compile_error)> owned(problem, &hs_free_compile_error);
    const std::string text = fmt::format("{} refuses the patterns: {}", hs_version(), problem->message);
    const bool lacks_memory = std::string_view(problem->message).find("allocate memory") != std::string_view::npos;
    return lacks_memory ? absl::ResourceExhaustedError(text) : absl::InvalidArgumentError(text);
  }
  compiled.database.reset(database);
  return compiled;
}

void LiteralMatcher::scan(std::span<const std::uint8_t> payload, MatchTable& matches) {
  if (scratch_ == nullptr || payload.empty()) {
    return;
  }
  Scan scan{payload, patterns_->heads, &matches};
  hs_scan(patterns_->database.get(), reinterpret_cast<const char*>(payload.data()),
          static_cast<unsigned>(payload.size()), 0, scratch_.get(), on_match, &scan);
  if (scan.thrown) {
    std::rethrow_exception(scan.thrown);
  }
}

}  // namespace catena::match
