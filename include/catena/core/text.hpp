// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace catena {

/// One argument of concat() as text. Views a string, which outlives it; stores the text of a number itself.
class TextPiece {
 public:
  // NOLINTBEGIN(google-explicit-constructor): arguments of concat() become pieces
  TextPiece(std::string_view text) : text_(text) {}
  TextPiece(const char* text) : text_(text) {}
  TextPiece(std::string const& text) : text_(text) {}
  TextPiece(char character) : own_{character}, text_(own_.data(), 1) {}
  TextPiece(bool value) : text_(value ? "true" : "false") {}
  TextPiece(std::signed_integral auto value) : text_(digits(static_cast<long long>(value))) {}
  TextPiece(std::unsigned_integral auto value) : text_(digits(static_cast<unsigned long long>(value))) {}
  TextPiece(std::floating_point auto value)
      : text_(own_.data(), fmt::format_to_n(own_.data(), own_.size(), "{}", value).size) {}
  // NOLINTEND(google-explicit-constructor)
  TextPiece(TextPiece const&) = delete;
  TextPiece& operator=(TextPiece const&) = delete;

  std::string_view text() const { return text_; }

 private:
  std::string_view digits(auto value) {
    const auto end = std::to_chars(own_.data(), own_.data() + own_.size(), value).ptr;
    return {own_.data(), static_cast<std::size_t>(end - own_.data())};
  }

  std::array<char, 32> own_;  // the longest: a double with 17 digits, a sign, a point and an exponent
  std::string_view text_;
};

inline std::string concat_pieces(std::initializer_list<TextPiece> pieces) {
  std::size_t bytes = 0;
  for (TextPiece const& piece : pieces) {
    bytes += piece.text().size();
  }
  std::string text;
  text.reserve(bytes);
  for (TextPiece const& piece : pieces) {
    text += piece.text();
  }
  return text;
}

/// The concatenation of the arguments: strings, characters, and numbers as fmt writes them. (Abseil's StrCat here does
/// not take std::string_view.) No argument type instantiates a formatting template of its own, as concat() has more
/// than a thousand calls.
template <typename... Args>
std::string concat(Args const&... args) {
  return concat_pieces({TextPiece(args)...});
}

}  // namespace catena
