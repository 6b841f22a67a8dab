// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/tokens.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/catena-static-check/words.hpp"

#include <clang/Basic/LangOptions.h>
#include <clang/Lex/Lexer.h>

namespace catena::checker {
namespace {

/// Characters that make text look other than it is: they turn its direction or have no width.
constexpr auto kInvisible =
    std::to_array<std::string_view>({"\xE2\x80\x8B", "\xE2\x80\x8C", "\xE2\x80\x8D", "\xE2\x80\x8E", "\xE2\x80\x8F",
                                     "\xE2\x80\xAA", "\xE2\x80\xAB", "\xE2\x80\xAC", "\xE2\x80\xAD", "\xE2\x80\xAE",
                                     "\xE2\x81\xA6", "\xE2\x81\xA7", "\xE2\x81\xA8", "\xE2\x81\xA9", "\xEF\xBB\xBF"});

struct Token {
  clang::tok::TokenKind kind;
  bool starts_line;
  std::size_t offset;
  std::string_view text;
};

clang::LangOptions raw_language() {
  clang::LangOptions language;
  language.CPlusPlus = true;
  language.CPlusPlus11 = true;
  language.CPlusPlus14 = true;
  language.CPlusPlus17 = true;
  language.Digraphs = true;
  return language;
}

/// Comments are left out.
std::vector<Token> tokens_of(std::string const& text) {
  static const clang::LangOptions kLanguage = raw_language();
  const char* begin = text.c_str();
  clang::Lexer lexer(clang::SourceLocation(), kLanguage, begin, begin, begin + text.size());
  std::vector<Token> tokens;
  for (clang::Token token; !lexer.LexFromRawLexer(token) || token.isNot(clang::tok::eof);) {
    if (token.is(clang::tok::eof)) {
      break;
    }
    const std::size_t end = static_cast<std::size_t>(lexer.getBufferLocation() - begin);
    const std::size_t offset = end - token.getLength();
    tokens.push_back(
        {token.getKind(), token.isAtStartOfLine(), offset, std::string_view(text).substr(offset, token.getLength())});
  }
  return tokens;
}

class TokenCheck {
 public:
  TokenCheck(File const& file, std::set<std::string, std::less<>> const& known, Diagnostics& diagnostics)
      : file_(file), known_(known), diagnostics_(diagnostics) {}

  /// False if what is left of the file depends on the compiler.
  bool run() {
    check_characters();
    const std::vector<Token> tokens = tokens_of(file_.text);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind == clang::tok::hash && tokens[i].starts_line) {
        i = directive(tokens, i);
      } else {
        check(tokens, i);
      }
    }
    return is_plain_;
  }

 private:
  /// What changes how the rest is read.
  void refuse_text(std::size_t offset, std::string_view rule, std::string message) {
    is_plain_ = false;
    refuse(offset, rule, std::move(message));
  }
  void refuse(std::size_t offset, std::string_view rule, std::string message) {
    const std::string_view before = std::string_view(file_.text).substr(0, offset);
    const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    diagnostics_.add({Severity::kRefused, file_.name, 1 + static_cast<unsigned>(std::ranges::count(before, '\n')),
                      static_cast<unsigned>(offset - line_begin) + 1, std::string(rule), std::move(message)});
  }

  void check_characters() {
    std::string_view text = file_.text;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::string_view rest = text.substr(i);
      const bool is_break = rest[0] == '\n' || rest[0] == '\t' || rest.starts_with("\r\n");
      if (static_cast<unsigned char>(rest[0]) < ' ' && !is_break) {
        refuse_text(i, "character", "a control character; remove it");
      } else if (rest[0] == '\\' && rest.find_first_not_of(" \t\r", 1) == rest.find('\n', 1)) {
        refuse_text(i, "line-splice", "a backslash joins two lines, which hides tokens; write one line");
      } else if (rest.starts_with("??") && rest.size() > 2 &&
                 std::string_view("=/'()!<>-").find(rest[2]) != std::string_view::npos) {
        refuse_text(i, "trigraph", "a trigraph is another character to some compilers; write the character itself");
      } else if (std::ranges::any_of(kInvisible, [&](std::string_view c) { return rest.starts_with(c); })) {
        refuse_text(i, "character", "an invisible character, or one turning the text around; remove it");
      }
    }
  }

  /// A directive: the index of its last token.
  std::size_t directive(std::vector<Token> const& tokens, std::size_t hash) {
    std::size_t last = hash;
    while (last + 1 < tokens.size() && !tokens[last + 1].starts_line) {
      ++last;
    }
    const std::string_view name = last > hash ? tokens[hash + 1].text : std::string_view();
    if (tokens[hash].text != "#") {
      refuse_text(tokens[hash].offset, "digraph", "a digraph is read as another token; write '#'");
    } else if (name == "include") {
      include(tokens[hash].offset, tokens[hash + 1].offset + name.size());
    } else if (name != "pragma" || last != hash + 2 || tokens[last].text != "once") {
      refuse_text(
          tokens[hash].offset, "directive",
          "'#" + shown(name) +
              "' makes the source mean different things to different compilers; a kernel has #include and #pragma "
              "once, `if constexpr` in place of #if, constexpr variables and inline functions in place of #define");
    }
    return last;
  }

  void include(std::size_t hash, std::size_t after) {
    const std::string_view text = file_.text;
    std::string_view name = text.substr(after, std::min(text.find('\n', after), text.size()) - after);
    name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
    const char close = name.starts_with('<') ? '>' : name.starts_with('"') ? '"' : '\0';
    const std::size_t end = close == '\0' ? std::string_view::npos : name.find(close, 1);
    if (end == std::string_view::npos) {
      refuse_text(hash, "include", "an #include of a macro; write the name of a file");
      return;
    }
    name = name.substr(1, end - 1);
    const std::string folder = file_.name.substr(0, file_.name.rfind('/') + 1);  // npos + 1 is 0
    if (!folder.empty() && close == '"' && known_.contains(folder + std::string(name))) {
      refuse_text(hash, "include",
                  "'" + shown(name) + "' is '" + shown(folder + std::string(name)) +
                      "' to some compilers and not to others; write the whole name");
    } else if (!known_.contains(name)) {
      refuse_text(hash, "include",
                  "'" + shown(name) +
                      "' is neither a file of this kernel nor a header for kernels; name it with the "
                      "kernel's files, or include catena/kernel/context.hpp");
    }
  }

  void check(std::vector<Token> const& tokens, std::size_t i) {
    Token const& token = tokens[i];
    const std::string_view text = token.text;
    constexpr auto kDigraphs = std::to_array<std::string_view>({"<:", ":>", "<%", "%>", "%:", "%:%:"});
    if (token.kind == clang::tok::raw_identifier) {
      word(tokens, i);
    } else if (std::ranges::find(kDigraphs, text) != kDigraphs.end()) {
      refuse_text(token.offset, "digraph", "a digraph is read as another token; write the token itself");
    } else if (clang::tok::isStringLiteral(token.kind)) {
      const std::string_view prefix = text.substr(0, text.find('"'));
      if (prefix.ends_with('R')) {
        refuse_text(token.offset, "raw-string", "compilers differ in its content; write a plain string");
      } else if (!prefix.empty() || !text.ends_with('"')) {
        refuse(token.offset, "string", "kernels have plain strings, as the text of a static_assert");
      }
    } else if (token.kind == clang::tok::unknown || token.kind == clang::tok::hash ||
               token.kind == clang::tok::hashhash || token.kind == clang::tok::at) {
      refuse_text(token.offset, "character", "'" + shown(text) + "' is no part of a kernel");
    }
  }

  void word(std::vector<Token> const& tokens, std::size_t i) {
    Token const& token = tokens[i];
    const std::string_view text = token.text;
    const auto is_plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    if (!std::ranges::all_of(text, is_plain)) {
      refuse_text(token.offset, "character", "'" + shown(text) + "' has letters similar to others; names are of ASCII");
    } else if (Rule const* rule = rule_against(text); rule != nullptr) {
      refuse(token.offset, rule->name, "'" + shown(text) + "': " + std::string(rule->advice));
    } else if (text == "template" && (i + 1 == tokens.size() || tokens[i + 1].kind != clang::tok::less)) {
      const std::string_view before = i == 0 ? std::string_view() : tokens[i - 1].text;
      if (before != "." && before != "->" && before != "::") {
        refuse(token.offset, "explicit-instantiation",
               "an explicit instantiation may name private members; use the template where it is needed");
      }
    }
  }

  File const& file_;
  std::set<std::string, std::less<>> const& known_;
  Diagnostics& diagnostics_;
  bool is_plain_ = true;
};

}  // namespace

bool check_tokens(Job const& job, Diagnostics& diagnostics) {
  std::set<std::string, std::less<>> known;
  for (auto const* files : {&job.author, &job.framework}) {
    for (File const& file : *files) {
      known.insert(file.name);
    }
  }
  bool is_plain = true;
  for (File const& file : job.author) {
    is_plain = TokenCheck(file, known, diagnostics).run() && is_plain;
  }
  return is_plain;
}

}  // namespace catena::checker
