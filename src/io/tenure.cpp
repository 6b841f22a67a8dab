// SPDX-License-Identifier: Apache-2.0
#include "io/tenure.hpp"

#include <algorithm>
#include <span>

namespace catena::io {
namespace {

/// What came since `base`, whose names are all in `now`.
std::vector<NamedCount> since(std::span<const NamedCount> base, std::vector<NamedCount> now) {
  for (NamedCount& count : now) {
    const auto before = std::ranges::find(base, count.name, &NamedCount::name);
    count.count -= before == base.end() ? 0 : before->count;
  }
  return now;
}

}  // namespace

std::unique_ptr<SourceTenure> SourceTenure::after(SourceTenure const& before) {
  std::unique_ptr<SourceTenure> next(new SourceTenure());
  next->source_ = before.source_;
  return next;
}

bool SourceTenure::pass_on() {
  const std::lock_guard lock(mutex_);
  is_passed_on_ = is_passed_on_ || !has_ended_;
  return is_passed_on_;
}

void SourceTenure::take_over(SourceTenure const& before) {
  const std::scoped_lock lock(mutex_, before.mutex_);
  base_ = before.final_ ? *before.final_ : source_->counts();
}

bool SourceTenure::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

void SourceTenure::stop() {
  const std::lock_guard lock(mutex_);
  if (is_passed_on_ && !has_ended_) {
    final_ = source_->counts();
  } else if (!is_passed_on_) {
    source_->stop();
  }
  has_ended_ = true;
}

SourceCounts SourceTenure::counts() const {
  const std::lock_guard lock(mutex_);
  if (!base_) {
    return {};
  }
  SourceCounts now = final_ ? *final_ : source_->counts();
  return {now.seen - base_->seen, since(base_->drops, std::move(now.drops))};
}

std::unique_ptr<SinkTenure> SinkTenure::after(SinkTenure const& before) {
  std::unique_ptr<SinkTenure> next(new SinkTenure());
  next->sink_ = before.sink_;
  return next;
}

void SinkTenure::pass_on() {
  const std::lock_guard lock(mutex_);
  is_passed_on_ = true;
}

void SinkTenure::take_over(SinkTenure const& before) {
  const std::scoped_lock lock(mutex_, before.mutex_);
  base_ = before.final_ ? *before.final_ : sink_->counts();
}

Status SinkTenure::finish() {
  std::unique_lock lock(mutex_);
  if (!is_passed_on_) {
    lock.unlock();  // who counts need not wait for a port
    return sink_->finish();
  }
  if (!final_) {
    final_ = sink_->counts();
  }
  return absl::OkStatus();
}

SinkCounts SinkTenure::counts() const {
  const std::lock_guard lock(mutex_);
  if (!base_) {
    return {};
  }
  SinkCounts now = final_ ? *final_ : sink_->counts();
  return {now.sent - base_->sent, since(base_->drops, std::move(now.drops)), now.fragments - base_->fragments};
}

}  // namespace catena::io
