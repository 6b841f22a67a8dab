// SPDX-License-Identifier: Apache-2.0
#include "flow_table.hpp"

#include <sys/mman.h>
#include <catena/core/text.hpp>

#include <bit>

namespace catena::monitor {

void Unmap::operator()(void* memory) const { ::munmap(memory, bytes); }

template <typename T>
Result<FlowTable::Array<T>> FlowTable::reserve(std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(concat("no memory for ", bytes, " bytes of the flow table"));
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // fewer TLB misses where the kernel agrees; no harm where it does not
  return Array<T>(static_cast<T*>(memory), Unmap{bytes});
}

Result<FlowTable> FlowTable::create(std::uint32_t capacity) {
  FlowTable table;
  table.capacity_ = capacity;
  const std::size_t heads = std::bit_ceil(std::size_t{capacity}) * 2;
  table.mask_ = heads - 1;
  CATENA_ASSIGN_OR_RETURN(table.flows_, reserve<Flow>(capacity));
  CATENA_ASSIGN_OR_RETURN(table.order_, reserve<Order>(std::size_t{capacity} + 1));
  CATENA_ASSIGN_OR_RETURN(table.heads_, reserve<std::uint32_t>(heads));
  table.order_[capacity] = {0, capacity, capacity};
  return table;
}

void FlowTable::prefetch_flow(std::uint64_t hash) const {
  if (const std::uint32_t head = heads_[hash & mask_]; head != 0) {
    __builtin_prefetch(&flows_[head - 1], 1);
    __builtin_prefetch(&order_[head - 1], 1);
  }
}

void FlowTable::prefetch_order(packet::Ipv4FlowKey const& key, std::uint64_t hash) const {
  if (const std::uint32_t flow = find(key, hash); flow != kNone) {
    __builtin_prefetch(&order_[order_[flow].older], 1);
    __builtin_prefetch(&order_[order_[flow].newer], 1);
  }
}

std::uint32_t FlowTable::insert(packet::Ipv4FlowKey const& key, std::uint64_t hash, std::uint64_t clock_ns) {
  std::uint32_t flow = free_;
  if (flow == kNone) {
    flow = never_used_++;
  } else {
    free_ = flows_[flow].next;
  }
  std::uint32_t& head = heads_[hash & mask_];
  flows_[flow] = {.key = key,
                  .packets = 0,
                  .bytes = 0,
                  .first_ns = 0,
                  .last_ns = 0,
                  .started_ns = clock_ns,
                  .next = head - 1,
                  .tcp_flags = 0,
                  .tos = 0};
  head = flow + 1;
  order_[flow].used_ns = clock_ns;
  link_newest(flow);
  ++size_;
  return flow;
}

void FlowTable::erase(std::uint32_t flow) {
  std::uint32_t& head = heads_[hash(flows_[flow].key) & mask_];
  if (head - 1 == flow) {
    head = flows_[flow].next + 1;
  } else {
    std::uint32_t before = head - 1;
    while (flows_[before].next != flow) {
      before = flows_[before].next;
    }
    flows_[before].next = flows_[flow].next;
  }
  unlink(flow);
  flows_[flow].next = free_;
  free_ = flow;
  --size_;
}

std::size_t FlowTable::memory_bytes() const {
  return flows_.get_deleter().bytes + order_.get_deleter().bytes + heads_.get_deleter().bytes;
}

}  // namespace catena::monitor
