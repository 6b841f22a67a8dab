// SPDX-License-Identifier: Apache-2.0
#include "nf/named_files.hpp"

#include <utility>

namespace catena::nf {
namespace {

thread_local NamedFiles* innermost = nullptr;

}  // namespace

NamedFiles::NamedFiles() : outer_(std::exchange(innermost, this)) {}
NamedFiles::~NamedFiles() { innermost = outer_; }

void NamedFiles::add(NamedFile file) {
  if (innermost != nullptr) {
    innermost->files_.push_back(std::move(file));
  }
}

void NamedFiles::add(NamedOutput output) {
  if (innermost != nullptr) {
    innermost->outputs_.push_back(std::move(output));
  }
}

void NamedFiles::add(NamedKey key) {
  if (innermost != nullptr) {
    innermost->keys_.push_back(std::move(key));
  }
}

}  // namespace catena::nf
