// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/epoll.hpp"

#include <cerrno>
#include <memory>

#include "stack/sockets/attachment.hpp"
#include "stack/sockets/real_calls.hpp"
#include "stack/sockets/waiting.hpp"

namespace catena::sockets {
namespace {

/// The kernel's events have this as data if the attachment's descriptor is readable: no program has its address.
char wake_up;

void enqueue(Watch& watch) {
  if (watch.is_ready) {
    return;
  }
  EpollSet& set = *watch.set;
  watch.is_ready = true;
  watch.next_ready = nullptr;
  watch.previous_ready = set.last_ready;
  (set.last_ready == nullptr ? set.first_ready : set.last_ready->next_ready) = &watch;
  set.last_ready = &watch;
}

void dequeue(Watch& watch) {
  if (!watch.is_ready) {
    return;
  }
  EpollSet& set = *watch.set;
  watch.is_ready = false;
  (watch.previous_ready == nullptr ? set.first_ready : watch.previous_ready->next_ready) = watch.next_ready;
  (watch.next_ready == nullptr ? set.last_ready : watch.next_ready->previous_ready) = watch.previous_ready;
}

/// The events of `watch` that are true now.
std::uint32_t events_of(Watch const& watch) {
  return watch.is_disarmed ? 0 : state_of(*watch.target, watch.events) & (watch.events | EPOLLERR | EPOLLHUP);
}

/// After ADD and MOD: reports what is true already.
void arm(Watch& watch, epoll_event const& event) {
  watch.events = event.events;
  watch.data = event.data;
  watch.is_disarmed = false;
  dequeue(watch);
  if (events_of(watch) != 0) {
    enqueue(watch);
  }
}

EpollSet* find_or_make_set(int epoll) {
  if (Descriptor* known = find(epoll)) {
    return known->kind == Kind::kEpoll ? static_cast<EpollSet*>(known) : nullptr;
  }
  // EPOLL_CTL_DEL of no descriptor: EBADF tells an epoll instance from other descriptors
  epoll_event unused{};
  if (real().epoll_ctl(epoll, EPOLL_CTL_DEL, -1, &unused) == 0 || errno != EBADF) {
    return nullptr;
  }
  auto set = std::make_unique<EpollSet>();
  set->kind = Kind::kEpoll;
  set->number = epoll;
  return add(set.get()) ? set.release() : nullptr;
}

/// Reports ready watches to `events`. Returns their number.
int report(EpollSet& set, epoll_event* events, int most) {
  int count = 0;
  Watch* const last = set.last_ready;
  for (Watch* watch = set.first_ready; watch != nullptr && count < most;) {
    Watch* const next = watch == last ? nullptr : watch->next_ready;
    const std::uint32_t true_events = events_of(*watch);
    dequeue(*watch);
    if (true_events != 0) {
      events[count].events = true_events;
      events[count].data = watch->data;
      ++count;
      watch->is_disarmed = (watch->events & EPOLLONESHOT) != 0;
      if ((watch->events & (EPOLLET | EPOLLONESHOT)) == 0) {
        enqueue(*watch);  // level-triggered: last, so that each has its turn
      }
    }
    watch = next;
  }
  return count;
}

/// The kernel's events, without the attachment's.
int take_kernel_events(EpollSet& set, epoll_event* events, int most, int timeout_ms, sigset_t const* mask) {
  const int got = real().epoll_pwait(set.number, events, most, timeout_ms, mask);
  if (got < 0) {
    return -errno;
  }
  int kept = 0;
  for (int i = 0; i < got; ++i) {
    if (events[i].data.ptr != &wake_up) {
      events[kept++] = events[i];
    }
  }
  return kept;
}

/// The kernel's instance wakes for events of the stack.
void watch_attachment(EpollSet& set) {
  Attachment const& attachment = Attachment::get();
  if (set.attachment == attachment.number()) {
    return;
  }
  if (attachment.stack() != nullptr) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &wake_up;
    real().epoll_ctl(set.number, EPOLL_CTL_ADD, ::catena_stack_descriptor(attachment.stack()), &event);
  }
  set.attachment = attachment.number();
}

}  // namespace

int change_watch(int epoll, int operation, Descriptor& target, epoll_event const* event) {
  EpollSet* set = find_or_make_set(epoll);
  if (set == nullptr) {
    return -EINVAL;
  }
  if (operation != EPOLL_CTL_DEL && event == nullptr) {
    return -EFAULT;
  }
  Watch** place = &target.watches;
  while (*place != nullptr && (*place)->set != set) {
    place = &(*place)->next_of_target;
  }
  Watch* const found = *place;
  if (operation == EPOLL_CTL_ADD) {
    if (found != nullptr) {
      return -EEXIST;
    }
    auto watch = std::make_unique<Watch>();
    watch->set = set;
    watch->target = &target;
    *place = watch.get();
    arm(*watch.release(), *event);
    return 0;
  }
  if (found == nullptr) {
    return -ENOENT;
  }
  if (operation == EPOLL_CTL_MOD) {
    arm(*found, *event);
    return 0;
  }
  if (operation != EPOLL_CTL_DEL) {
    return -EINVAL;
  }
  dequeue(*found);
  *place = found->next_of_target;
  delete found;
  return 0;
}

int wait_for_watches(EpollSet& set, epoll_event* events, int most, Deadline const& deadline, sigset_t const* mask) {
  if (most <= 0) {
    return -EINVAL;
  }
  constexpr std::uint32_t kTurnOfKernel = 16;
  Attachment& attachment = Attachment::get();
  for (;;) {
    const bool has_news = attachment.pump() > 0;
    const std::uint32_t pumped = attachment.number();
    const int count = report(set, events, most);
    if (count == 0 && (has_news || attachment.number() != pumped)) {
      continue;  // a sleep needs a pump() without events, of this attachment: report() may have lost it
    }
    // the program may never be idle: other descriptors have their turn
    if (count > 0 && (++set.waits % kTurnOfKernel != 0 || count == most)) {
      return count;
    }
    if (count == 0) {
      attachment.send_held();
    }
    watch_attachment(set);
    const int timeout_ms = count > 0 ? 0 : deadline.remaining_ms(attachment.sleep_limit_ms());
    const int got = take_kernel_events(set, events + count, most - count, timeout_ms, mask);
    if (count > 0) {
      return count + (got > 0 ? got : 0);
    }
    if (got != 0) {
      return got;
    }
    if (deadline.is_over() && attachment.pump() == 0) {
      return report(set, events, most);
    }
  }
}

void close_epoll(EpollSet& set) { remove(&set); }

void mark_ready(Descriptor& descriptor) {
  for (Watch* watch = descriptor.watches; watch != nullptr; watch = watch->next_of_target) {
    if (!watch->is_disarmed) {
      enqueue(*watch);
    }
  }
}

void drop_watches(Descriptor& descriptor) {
  if (descriptor.kind != Kind::kEpoll) {
    while (Watch* watch = descriptor.watches) {
      dequeue(*watch);
      descriptor.watches = watch->next_of_target;
      delete watch;
    }
    return;
  }
  for (Descriptor* one = next_from(0); one != nullptr; one = next_from(one->number + 1)) {
    for (Watch** place = &one->watches; *place != nullptr;) {
      Watch* const watch = *place;
      if (watch->set == &descriptor) {
        dequeue(*watch);
        *place = watch->next_of_target;
        delete watch;
      } else {
        place = &watch->next_of_target;
      }
    }
  }
}

}  // namespace catena::sockets
