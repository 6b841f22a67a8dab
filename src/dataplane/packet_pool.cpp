// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet_pool.hpp"

#include "eal/eal.hpp"

#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <sys/mman.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace catena::dataplane {
namespace {

/// The queue of free slots orders what was done to a slot before its release before what is done after it is handed
/// out again. It is in a library that is not built with ThreadSanitizer, so tell it.
void before_release([[maybe_unused]] rte_mempool* mempool) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(mempool);
#endif
}
void after_acquire([[maybe_unused]] rte_mempool* mempool) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(mempool);
#endif
}

constexpr std::size_t kPageBytes = 4096;

std::string megabytes(std::size_t bytes) { return concat((bytes + (1U << 20) - 1) >> 20, " MiB"); }

/// Whole pages for each array, so that it can be pinned without its neighbours.
template <typename T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U>
  explicit PageAllocator(PageAllocator<U> const& /*other*/) {}
  T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + kPageBytes - 1) / kPageBytes * kPageBytes;
    return static_cast<T*>(::operator new (bytes, std::align_val_t{kPageBytes}));
  }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete (memory, std::align_val_t{kPageBytes}); }
  bool operator==(PageAllocator const&) const { return true; }
};
template <typename T>
using Column = std::vector<T, PageAllocator<T>>;

/// DPDK's names are global to the process.
std::uint32_t next_number() {
  static std::atomic<std::uint32_t> number{0};
  return number.fetch_add(1);
}

}  // namespace

struct PacketPool::Columns {
  explicit Columns(std::size_t slots)
      : offset(slots),
        length(slots),
        layers(slots),
        verdict(slots),
        port(slots),
        index(slots),
        arrival_ns(slots),
        rewritten(slots),
        ingress(slots),
        mtu(slots) {}

  Column<std::uint16_t> offset;
  Column<std::uint16_t> length;
  Column<packet::Layers> layers;
  Column<std::uint8_t> verdict;
  Column<std::uint16_t> port;
  Column<std::uint64_t> index;
  Column<std::uint64_t> arrival_ns;
  Column<std::uint8_t> rewritten;
  Column<std::uint16_t> ingress;
  Column<std::uint16_t> mtu;
};

struct PacketPool::FreeUnits {
  ~FreeUnits() { rte_ring_free(ring); }
  rte_ring* ring = nullptr;
};

Result<std::unique_ptr<PacketPool>> PacketPool::create(std::uint32_t slots, std::uint32_t unit_packets) {
  if (slots < kMinSlots || slots > kMaxSlots || !std::has_single_bit(slots)) {
    return absl::InvalidArgumentError(
        concat("a packet pool of ", slots, " slots: write a power of two from ", kMinSlots, " to ", kMaxSlots));
  }
  if (unit_packets == 0 || unit_packets > std::min(kMaxUnitPackets, slots / 2)) {
    return absl::InvalidArgumentError(concat("units of ", unit_packets, " packets: write 1 to ",
                                             std::min(kMaxUnitPackets, slots / 2), " for a pool of ", slots, " slots"));
  }
  CATENA_RETURN_IF_ERROR(eal::start());
  std::unique_ptr<PacketPool> pool(new PacketPool);
  pool->slots_ = slots;
  pool->unit_packets_ = unit_packets;
  CATENA_RETURN_IF_ERROR(pool->map_memory());
  CATENA_RETURN_IF_ERROR(pool->create_mempool());
  CATENA_RETURN_IF_ERROR(pool->number_mbufs());
  CATENA_RETURN_IF_ERROR(pool->create_columns_and_units());
  return pool;
}

Status PacketPool::map_memory() {
  memory_bytes_ = std::size_t{slots_} * packet::kSlotBytes;
  const auto refused = [this](std::string_view call) {
    return absl::ResourceExhaustedError(concat("packet pool: ", megabytes(memory_bytes_), " for ", slots_,
                                               " slots: ", call, ": ", std::strerror(errno)));
  };
  memory_fd_ = memfd_create("catena_packets", MFD_CLOEXEC);
  // fallocate takes the pages now: memory that runs out later would be a SIGBUS
  if (memory_fd_ < 0 || fallocate(memory_fd_, 0, 0, static_cast<off_t>(memory_bytes_)) != 0) {
    return refused(memory_fd_ < 0 ? "memfd_create" : "fallocate");
  }
  void* mapped = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory_fd_, 0);
  if (mapped == MAP_FAILED) {
    return refused("mmap");
  }
  memory_ = static_cast<std::uint8_t*>(mapped);
  if (rte_extmem_register(memory_, memory_bytes_, nullptr, 0, kPageBytes) != 0) {
    return absl::ResourceExhaustedError(
        concat("packet pool: DPDK cannot register ", megabytes(memory_bytes_), ": ", rte_strerror(rte_errno)));
  }
  registered_ = true;
  return absl::OkStatus();
}

Status PacketPool::create_mempool() {
  rte_pktmbuf_extmem memory{};
  memory.buf_ptr = memory_;
  // pages of ordinary memory have no fixed physical address: only where I/O addresses are virtual can a NIC use them
  memory.buf_iova = rte_eal_iova_mode() == RTE_IOVA_VA ? reinterpret_cast<rte_iova_t>(memory_) : RTE_BAD_IOVA;
  memory.buf_len = memory_bytes_;
  memory.elt_size = packet::kSlotBytes;
  mempool_ = rte_pktmbuf_pool_create_extbuf(concat("catena_pool_", next_number()).c_str(), slots_, 0, 0,
                                            packet::kSlotBytes, SOCKET_ID_ANY, &memory, 1);
  if (mempool_ == nullptr) {
    return absl::ResourceExhaustedError(
        concat("packet pool: DPDK has no memory for ", slots_, " mbufs: ", rte_strerror(rte_errno)));
  }
  return absl::OkStatus();
}

Status PacketPool::create_columns_and_units() {
  // enough for a unit for each unit_packets_ slots even if every second unit is only half full, and some on the way
  // back
  const std::uint32_t units = 2 * slots_ / unit_packets_ + 64;
  try {
    columns_ = std::make_unique<Columns>(slots_);
    free_units_ = std::make_unique<FreeUnits>();
    units_.reserve(units);
    while (units_.size() < units) {
      auto unit = std::make_unique<Unit>();
      unit->slots.resize(unit_packets_);
      unit->mbufs.resize(unit_packets_);
      units_.push_back(std::move(unit));
    }
  } catch (std::bad_alloc const&) {
    return absl::ResourceExhaustedError(concat("packet pool: no memory for the metadata of ", slots_, " slots"));
  }
  meta_ = {columns_->offset.data(),  columns_->length.data(), columns_->layers.data(),     columns_->verdict.data(),
           columns_->port.data(),    columns_->index.data(),  columns_->arrival_ns.data(), columns_->rewritten.data(),
           columns_->ingress.data(), columns_->mtu.data()};
  free_units_->ring = rte_ring_create(concat("catena_units_", next_number()).c_str(), units, SOCKET_ID_ANY,
                                      RING_F_MP_HTS_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
  if (free_units_->ring == nullptr) {
    return absl::ResourceExhaustedError(
        concat("packet pool: DPDK has no memory for a ring of ", units, " units: ", rte_strerror(rte_errno)));
  }
  for (std::unique_ptr<Unit> const& unit : units_) {
    rte_ring_enqueue(free_units_->ring, unit.get());
  }
  return absl::OkStatus();
}

PacketPool::~PacketPool() {
  rte_mempool_free(mempool_);
  if (registered_) {
    rte_extmem_unregister(memory_, memory_bytes_);
  }
  if (memory_ != nullptr) {
    munmap(memory_, memory_bytes_);
  }
  if (memory_fd_ >= 0) {
    close(memory_fd_);
  }
}

Unit* PacketPool::acquire_unit() {
  void* unit = nullptr;
  return rte_ring_dequeue(free_units_->ring, &unit) == 0 ? static_cast<Unit*>(unit) : nullptr;
}

bool PacketPool::acquire_slots(Unit& unit, std::uint32_t count) {
  rte_mbuf** mbufs = unit.mbufs.data() + unit.count;
  // raw: a driver resets what it takes, and DpdkPort's sink sets what a driver reads
  if (rte_mempool_get_bulk(mempool_, reinterpret_cast<void**>(mbufs), count) != 0) {
    return false;
  }
  after_acquire(mempool_);
  for (std::uint32_t i = 0; i < count; ++i) {
    unit.slots[unit.count + i] = slot_of(mbufs[i]);
  }
  return true;
}

bool PacketPool::acquire_mbufs(std::span<rte_mbuf*> mbufs) {
  if (rte_pktmbuf_alloc_bulk(mempool_, mbufs.data(), static_cast<unsigned int>(mbufs.size())) != 0) {
    return false;
  }
  after_acquire(mempool_);
  return true;
}

void PacketPool::adopt(Unit& unit, std::span<rte_mbuf* const> mbufs, std::uint64_t first_index,
                       std::uint64_t arrival_ns) {
  for (rte_mbuf* mbuf : mbufs) {
    const std::uint32_t slot = slot_of(mbuf);
    unit.mbufs[unit.count] = mbuf;
    unit.slots[unit.count] = slot;
    const packet::Layers layers = packet::parse(this->slot(slot) + mbuf->data_off, mbuf->data_len);
    enter(slot, mbuf->data_off, mbuf->data_len, layers, first_index++, arrival_ns);
    ++unit.count;
  }
}

void PacketPool::release_slots(Unit& unit, std::uint32_t first, std::uint32_t count) {
  if (count == 0) {
    return;
  }
  before_release(mempool_);
  // raw: mbufs of a unit have one segment and one holder, as the pool handed them out
  rte_mempool_put_bulk(mempool_, reinterpret_cast<void* const*>(unit.mbufs.data() + first), count);
}

void PacketPool::release_unit(Unit* unit) {
  unit->count = 0;
  unit->host_fallback = false;
  unit->records.clear();
  rte_ring_enqueue(free_units_->ring, unit);  // has room for every unit of the pool
}

void PacketPool::quarantine(Unit const& unit) {
  quarantined_slots_.fetch_add(unit.count, std::memory_order_relaxed);
  quarantined_units_.fetch_add(1, std::memory_order_relaxed);
}

bool PacketPool::exhausted() const {
  return slots_ - quarantined_slots_.load(std::memory_order_relaxed) < unit_packets_ ||
         quarantined_units_.load(std::memory_order_relaxed) == units_.size();
}

void PacketPool::set_arrived(std::uint32_t slot, std::uint32_t length, std::uint64_t index, std::uint64_t arrival_ns) {
  set_arrived(slot, length, packet::parse(this->slot(slot) + packet::kSlotHeadroom, length), index, arrival_ns);
}

Status PacketPool::number_mbufs() {
  std::vector<rte_mbuf*> mbufs(slots_);
  if (rte_mempool_get_bulk(mempool_, reinterpret_cast<void**>(mbufs.data()), slots_) != 0) {
    return absl::InternalError("packet pool: a new mempool does not give all of its mbufs");
  }
  const auto [least, most] = std::minmax_element(mbufs.begin(), mbufs.end());
  first_mbuf_ = reinterpret_cast<std::uintptr_t>(*least);
  slot_of_mbuf_.assign((reinterpret_cast<std::uintptr_t>(*most) - first_mbuf_) / RTE_CACHE_LINE_SIZE + 1, 0);
  for (rte_mbuf const* mbuf : mbufs) {
    slot_of_mbuf_[(reinterpret_cast<std::uintptr_t>(mbuf) - first_mbuf_) / RTE_CACHE_LINE_SIZE] =
        static_cast<std::uint32_t>(
            static_cast<std::size_t>(static_cast<std::uint8_t const*>(mbuf->buf_addr) - memory_) / packet::kSlotBytes);
  }
  rte_mempool_put_bulk(mempool_, reinterpret_cast<void* const*>(mbufs.data()), slots_);
  return absl::OkStatus();
}

std::uint32_t PacketPool::slot_of(rte_mbuf const* mbuf) const {
  return slot_of_mbuf_[(reinterpret_cast<std::uintptr_t>(mbuf) - first_mbuf_) / RTE_CACHE_LINE_SIZE];
}

std::uint32_t PacketPool::free_slots() const { return rte_mempool_avail_count(mempool_); }

std::uint32_t PacketPool::free_units() const { return rte_ring_count(free_units_->ring); }

}  // namespace catena::dataplane
