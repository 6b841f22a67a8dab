// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/macros.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "apps/catena-static-check/source.hpp"

#include <clang/Lex/MacroArgs.h>
#include <clang/Lex/Token.h>

namespace catena::checker {
namespace {

constexpr auto kAllowedMacros = std::to_array<std::string_view>(
    {"CATENA_KERNEL", "CATENA_UNROLL", "CATENA_SHARED", "CATENA_READS", "CATENA_WRITES", "CATENA_IN_COLUMNS",
     "CATENA_OUT_COLUMNS", "CATENA_FRAMES", "CATENA_HEADROOM", "CATENA_TAILROOM", "CATENA_LANES", "CATENA_AUX_BYTES",
     "CATENA_RESULT_BYTES", "CATENA_SPILL_FACTOR", "CATENA_ANY_GROUPS",
     // words that OpenCL reserves, as names
     "kernel", "local", "generic", "global", "constant"});

class MacroCheck : public clang::PPCallbacks {
 public:
  MacroCheck(clang::SourceManager const& sources, Diagnostics& diagnostics)
      : places_(sources), diagnostics_(diagnostics) {}

  void MacroExpands(clang::Token const& token, clang::MacroDefinition const&, clang::SourceRange,
                    clang::MacroArgs const* arguments) override {
    if (!places_.typed_by_author(token.getLocation())) {
      return;
    }
    const std::string name = token.getIdentifierInfo()->getName().str();
    if (!is_one_of(kAllowedMacros, name)) {
      places_.report(diagnostics_, Severity::kRefused, token.getLocation(), "macro",
                     "'" + shown(name) +
                         "' is a macro of the compiler or of the framework, with other values elsewhere; use the ones "
                         "that docs/writing-an-nf.md lists");
    } else if (name == "CATENA_KERNEL" && !is_one_name(arguments)) {
      places_.report(diagnostics_, Severity::kRefused, token.getLocation(), "macro",
                     "CATENA_KERNEL takes one name; write CATENA_KERNEL(name)");
    }
  }

 private:
  static bool is_one_name(clang::MacroArgs const* arguments) {
    if (arguments == nullptr || arguments->getNumMacroArguments() != 1) {
      return false;
    }
    clang::Token const* first = arguments->getUnexpArgument(0);
    return first[0].getIdentifierInfo() != nullptr && first[1].is(clang::tok::eof);
  }

  Places places_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::unique_ptr<clang::PPCallbacks> macro_check(clang::SourceManager const& sources, Diagnostics& diagnostics) {
  return std::make_unique<MacroCheck>(sources, diagnostics);
}

}  // namespace catena::checker
