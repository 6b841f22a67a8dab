// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "esp.hpp"
#include "functions/cipher/crypto.hpp"
#include "reservations.hpp"
#include "sa.hpp"

#include <catena/nf/nf.hpp>
#include <catena/nf/persistent.hpp>
#include <catena/nf/portable.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

/// ESP in tunnel mode (RFC 4303) with AES-128-CTR (RFC 3686) and HMAC-SHA1-96 (RFC 2404), in one direction.
///
/// Theory of operation. Work in packet order happens on the CPU. prepare() finds the association and, for encryption,
/// assigns the sequence number, which is also the IV. complete() checks the replay window after the ICV. For extended
/// sequence numbers, prepare() infers the high half from the window, although complete() has not yet moved it for
/// packets in flight: ReplayWindow::extend() returns the same number for any such lag. All other work depends only on
/// one packet and its Aux. compute() does it with intel-ipsec-mb, or the kernel does it, so placement and batch size
/// cannot affect the output.
///
/// A worked packet: an untagged frame of 14 + 84 bytes (a ping), no UDP encapsulation. text_length = 84 + 2 rounded up
/// to 88, so the padding is 1 2 and the trailer 2 4. The datagram stays in place in its slot; the frame begins
/// shift = 20 + 16 bytes earlier and ends 4 + 12 bytes later: 14 + 20 + 8 + 8 + 88 + 12 = 150 bytes.
///
/// Shards. Only packets of the same association depend on each other, so each association belongs to a shard with its
/// numbers and window, and the sharder sends its packets there (Owners). Packets without an association are
/// decided independently, by any shard.
///
/// Clauses: encapsulation RFC 4303 3.3, decapsulation 3.4, header fields RFC 4301 5.1.2.1, UDP RFC 3948 2 and 3.
namespace catena::ipsec {

/// Position in the descriptor's list of outputs: packets processed by a tunnel.
inline constexpr std::uint8_t kProtectedOutput = 0;

/// Positions in the descriptor's list of drop reasons.
enum DropReasonId : std::uint32_t {
  kNoSa = 0,
  kDropBadIcv,
  kReplay,
  kMalformed,
  kTooLong,
  kSequenceExhausted,
  kSelectorMismatch,
  kDropDummy,
  kCryptoFailed,
  kCleartext,
  kStateFailed,
  kDropFragment,
  kDropCongestion,
};

/// A configured association with its expanded keys.
struct Session {
  Association association;
  cipher::SessionKeys keys;
  OuterHeaders outer;
};

/// Shared by the NFs with one configuration. Immutable. Thread rule: any number of threads.
struct Tunnels {
  Direction direction = Direction::kEncrypt;
  std::vector<Session> sessions;  ///< file order
  std::string state_folder;
  std::shared_ptr<nf::Outputs> outputs;  ///< open the files in state_folder
  bool passes_unsupported = false;       ///< the chain passes packets that are not IPv4, in the clear
};

/// The shard of each association, in file order. Immutable from the first packet on.
class Owners {
 public:
  /// `names`: of the associations' states. Association a belongs to shard a % `shards`.
  Owners(std::vector<std::string> names, std::uint32_t shards);
  std::uint32_t operator[](std::size_t number) const { return shards_[number]; }
  /// Associations with a shard in `before`, or in an earlier NF, keep it. Precondition: as many shards.
  void continue_from(Owners const& before);

 private:
  std::vector<std::string> names_;
  std::vector<std::uint32_t> shards_;
  std::unordered_map<std::string, std::uint32_t> by_name_;  ///< of all NFs so far
};

/// Number of states kept between runs by these NFs, counted by start().
struct StateCounts {
  std::atomic<std::size_t> kept{0};
  std::atomic<std::size_t> fresh{0};  ///< states of `kept` without a file
};

/// Fields of a record line besides the verdict.
struct RecordedPacket {
  std::uint32_t spi = 0;
  std::uint64_t sequence = 0;  ///< whole number
};

inline std::uint64_t whole_sequence(Aux const& aux) { return std::uint64_t{aux.sequence_high} << 32 | aux.sequence; }

/// Drops the packet; the record line contains SPI and sequence number if known.
void drop(packet::Packet const& packet, DropReasonId reason, std::optional<RecordedPacket> what, nf::Outcome& outcome);
/// Writes the record line of a passed packet. Precondition: outcome.recording().
void pass(packet::Packet const& packet, RecordedPacket what, nf::Outcome& outcome);

/// Base of both directions.
class IpsecNf : public nf::Nf, public nf::Persistent, public nf::Portable {
 public:
  /// With a live tx, numbers and windows continue from the end of the last run (Reservations). With a capture, each run
  /// starts from the SA file, so that the same input gives the same bytes.
  Status start(nf::RunContext const& context) override;
  void join(nf::RunContext const& context) override { context_ = context; }
  Status finish() override;
  /// If migrate_state() was never called, leaves the states opened for it unchanged.
  ~IpsecNf() override;
  /// Opens the states of associations missing in `before`, or checks them in a trial. FailedPrecondition: another
  /// direction or state folder; else as Reservations::open().
  Status prepare_migration(std::span<nf::Nf const* const> before) override;
  /// Associations with the same keys keep their numbers and windows, whichever shards have them. The states of others
  /// are closed by another thread, so that another NF can open them, or a later one of this chain.
  void migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& is_mine) override;
  /// Opens the states not in use by another NF. States in use are assumed to belong to the replaced NF; load() opens
  /// them, or they stay closed. Errors: as Reservations::open().
  Status prepare_to_load() override;
  /// Saves the state of each association, by name.
  void save(nf::StateWriter& state) const override;
  /// Associations with the same keys keep their state. FailedPrecondition: as prepare_migration().
  Status load(nf::StateReader& state) override;
  nf::Hints hints() const override;
  /// Outer headers, ESP, padding and ICV, assuming equal traffic for all associations and uniformly distributed
  /// lengths.
  double grows_by() const override;
  /// Contains all associations, regardless of the shard: a device has these tables once for all shards.
  Result<nf::KernelSide> kernel_side() const override;
  /// Covers all started shards.
  std::vector<std::string> start_report() const override;

 protected:
  /// `owners`: of the replicated NF, else null.
  IpsecNf(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
          std::unique_ptr<cipher::CryptoBurst> crypto, nf::Shard shard, std::shared_ptr<Owners> owners);

  /// True if this shard assigns the association's numbers, or keeps its window.
  bool owns(std::uint32_t number) const { return (*owners_)[number] == shard_.index; }
  /// Sets association `number` to its state without an earlier run, by owns().
  virtual void begin(std::uint32_t number) = 0;
  /// Restores association `number` to its state in the previous run.
  virtual void resume(std::uint32_t number, SavedState const& state) = 0;
  /// Its current state.
  virtual SavedState state_of(std::uint32_t number) const = 0;
  /// True if the association's numbers are kept across runs; take() must then precede their use.
  bool is_kept(std::uint32_t number) const { return !kept_.empty() && kept_[number].has_value(); }
  /// As Reservations::take() for an association. Precondition: is_kept().
  std::uint64_t take(std::uint32_t number, std::uint64_t next) {
    return stores_[kept_[number]->store]->reservations->take(kept_[number]->entry, next);
  }

  RecordedPacket recorded(Aux const& aux) const {
    return {sessions_[aux.association].association.spi, whole_sequence(aux)};
  }

  std::shared_ptr<const Tunnels> tunnels_;
  std::shared_ptr<StateCounts> states_;
  std::span<const Session> sessions_;  ///< the sessions of tunnels_
  std::unique_ptr<cipher::CryptoBurst> crypto_;
  nf::Shard shard_;
  std::shared_ptr<Owners> owners_;  ///< of all shards

 private:
  /// States opened together: at the start, or when associations were added to a running chain. After a change of the
  /// shards, NFs of several shards use it, each for its associations.
  struct Store {
    std::size_t users = 1;  ///< NFs that have not finished
    std::unique_ptr<Reservations> reservations;
    std::vector<std::string> names;  ///< of its entries; empty: closed, as no association uses it
    std::vector<SavedState> left;    ///< where each continues
  };
  /// Location of an association's state.
  struct Kept {
    std::size_t store;
    std::uint32_t entry;
  };
  std::string state_name(Association const& association) const;
  /// State of the association to keep between runs; nullopt if it needs no state.
  std::optional<Reservations::Entry> entry_for(Association const& association);

  Result<std::shared_ptr<Store>> open(std::vector<Reservations::Entry> entries) const;
  void find_kept();
  void note_states();
  void close_unused();
  std::optional<SavedState> state_before(std::uint32_t number, std::span<nf::Nf* const> before) const;
  void drop_coming();

  std::optional<nf::RunContext> context_;       ///< nullopt: not started
  std::vector<std::shared_ptr<Store>> stores_;  ///< of owned associations and others, in a run with a live tx
  std::vector<std::string> names_;              ///< by association: name of its state; empty: no state, or no live tx
  std::vector<std::optional<Kept>> kept_;       ///< by association
  std::shared_ptr<Store> coming_;               ///< until migrate_state() or load()
  std::vector<Reservations::Entry> awaited_;    ///< states in use by another NF, until load()
  std::vector<std::optional<std::uint32_t>> same_before_;  ///< until then, by association: number in the old NFs
};

/// Reads the NF's configuration (see README.md).
Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

}  // namespace catena::ipsec

/// `type: ipsec`.
catena::nf::Descriptor const& catena_nf_ipsec();
