// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/compilations.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <utility>

namespace catena::device::remote {
namespace {

/// Different sources have different texts.
std::string whole_text(ProgramSource const& source) {
  std::string text;
  const auto add = [&text](std::string_view part) { text += concat(part.size(), ":", part); };
  for (SourceFile const& file : source.files) {
    add(file.name);
    add(file.text);
  }
  text += ';';
  for (std::string const& define : source.defines) {
    add(define);
  }
  return text;
}

}  // namespace

Result<Compiled> Compilations::compile(ProgramSource const& source) {
  std::string text = whole_text(source);
  if (std::optional<Compiled> known = find(text)) {
    return *std::move(known);
  }
  Compiled compiled;
  if (judge_ != nullptr) {
    CATENA_ASSIGN_OR_RETURN(compiled.form, judge_(source));
  }
  CATENA_ASSIGN_OR_RETURN(Binary binary, compile_now(source));
  compiled.binary = std::make_shared<const Binary>(std::move(binary));
  keep(std::move(text), compiled);
  return compiled;
}

Result<Binary> Compilations::compile_now(ProgramSource const& source) {
  if (store_ == nullptr) {
    return device_->compile(source);
  }
  if (std::optional<Binary> stored = store_->find(source)) {
    return *std::move(stored);
  }
  CATENA_ASSIGN_OR_RETURN(Binary binary, device_->compile(source));
  store_->keep(source, binary);
  return binary;
}

std::optional<Compiled> Compilations::find(std::string const& source) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(known_, source, &Known::source);
  if (found == known_.end()) {
    return std::nullopt;
  }
  known_.splice(known_.begin(), known_, found);
  return found->compiled;
}

void Compilations::keep(std::string source, Compiled compiled) {
  const std::scoped_lock lock(mutex_);
  known_.push_front({std::move(source), std::move(compiled)});
  bytes_ += known_.front().bytes();
  while (bytes_ > kMaxBytes) {
    bytes_ -= known_.back().bytes();
    known_.pop_back();
  }
}

}  // namespace catena::device::remote
