// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hostcopy/engine.hpp"

namespace catena::hostcopy {

/// An engine whose jobs are done when enqueue_copy() returns: it calls `copy` for each move. Ordered.
template <typename Copy>
class InstantEngine final : public Engine {
 public:
  InstantEngine(std::string_view name, Copy copy) : name_(name), copy_(std::move(copy)) {}
  std::string name() const override { return name_; }
  Capabilities capabilities() const override { return {.is_cpu = true, .is_ordered = true}; }

  Status configure(Limits const& limits) override {
    done_.reserve(limits.jobs);
    return absl::OkStatus();
  }

  Status enqueue_copy(Job job, std::span<const Move> moves) override {
    copy_(moves);
    done_.push_back(job);
    return absl::OkStatus();
  }

  Result<std::optional<Completion>> dequeue_copy() override {
    Result<std::optional<Completion>> first = peek_copy();
    if (*first && ++taken_ == done_.size()) {
      done_.clear();
      taken_ = 0;
    }
    return first;
  }

  Result<std::optional<Completion>> peek_copy() override {
    return taken_ == done_.size() ? std::nullopt : std::optional(Completion{done_[taken_], true});
  }

 private:
  std::string name_;
  Copy copy_;
  std::vector<Job> done_;
  std::size_t taken_ = 0;  ///< of done_, from its begin
};

}  // namespace catena::hostcopy
