// SPDX-License-Identifier: Apache-2.0
#include "io/shared_ends.hpp"

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

std::unique_ptr<SharedSource> SharedSource::after(SharedSource const& before) {
  std::unique_ptr<SharedSource> next(new SharedSource());
  next->source_ = before.source_;
  return next;
}

bool SharedSource::transfer() {
  const std::lock_guard lock(mutex_);
  is_passed_on_ = is_passed_on_ || !has_ended_;
  return is_passed_on_;
}

void SharedSource::take_over(SharedSource const& before) {
  const std::scoped_lock lock(mutex_, before.mutex_);
  base_ = before.final_ ? *before.final_ : source_->counts();
}

bool SharedSource::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

void SharedSource::stop() {
  const std::lock_guard lock(mutex_);
  if (is_passed_on_ && !has_ended_) {
    final_ = source_->counts();
  } else if (!is_passed_on_) {
    source_->stop();
  }
  has_ended_ = true;
}

SourceCounts SharedSource::counts() const {
  const std::lock_guard lock(mutex_);
  if (!base_) {
    return {};
  }
  SourceCounts now = final_ ? *final_ : source_->counts();
  return {now.seen - base_->seen, since(base_->drops, std::move(now.drops))};
}

std::unique_ptr<SharedSink> SharedSink::after(SharedSink const& before) {
  std::unique_ptr<SharedSink> next(new SharedSink());
  next->sink_ = before.sink_;
  return next;
}

void SharedSink::transfer() {
  const std::lock_guard lock(mutex_);
  is_passed_on_ = true;
}

void SharedSink::take_over(SharedSink const& before) {
  const std::scoped_lock lock(mutex_, before.mutex_);
  base_ = before.final_ ? *before.final_ : sink_->counts();
}

Status SharedSink::finish() {
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

SinkCounts SharedSink::counts() const {
  const std::lock_guard lock(mutex_);
  if (!base_) {
    return {};
  }
  SinkCounts now = final_ ? *final_ : sink_->counts();
  return {now.sent - base_->sent, since(base_->drops, std::move(now.drops)), now.fragments - base_->fragments};
}

}  // namespace catena::io
