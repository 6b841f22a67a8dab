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
#include <vector>

/// ESP in tunnel mode (RFC 4303) with AES-128-CTR (RFC 3686) and HMAC-SHA1-96 (RFC 2404), in one direction.
///
/// Theory of operation. What must happen in packet order happens on the CPU: prepare() finds the association and, to
/// encrypt, assigns the sequence number, which is also the IV; complete() checks the replay window after the ICV.
/// Where sequence numbers are extended, prepare() infers the high half from the window, which complete() of packets
/// still under way has not moved yet: ReplayWindow::extend() gives the same answer for any window that near. The rest
/// depends on one packet and its Aux alone, and is done by compute() with intel-ipsec-mb or by the kernel: so
/// placements and batch sizes cannot show in the output.
///
/// A worked packet: an untagged frame of 14 + 84 bytes (a ping), no UDP encapsulation. text_length = 84 + 2 rounded up
/// to 88, so the padding is 1 2 and the trailer 2 4. The datagram stays where it is in its slot; the frame begins
/// shift = 20 + 16 bytes earlier and ends 4 + 12 bytes later: 14 + 20 + 8 + 8 + 88 + 12 = 150 bytes.
///
/// Shards. What is sequential is so within one association, so association number a (file order) belongs to shard a % N
/// with its numbers, window and state file, and the divider sends its packets there. Packets of no association are
/// decided one by one, by any shard.
///
/// Clauses: encapsulation RFC 4303 3.3, decapsulation 3.4, header fields RFC 4301 5.1.2.1, UDP RFC 3948 2 and 3.
namespace catena::ipsec {

/// Position in the descriptor's list of outputs: packets that went through a tunnel.
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

/// A configured association and what its keys expand to.
struct Session {
  Association association;
  cipher::SessionKeys keys;
  OuterHeaders outer;
};

/// What the NFs with one configuration share. Immutable: any number of threads.
struct Tunnels {
  Direction direction = Direction::kEncrypt;
  std::vector<Session> sessions;  ///< file order
  std::string state_folder;
  std::shared_ptr<nf::Outputs> outputs;  ///< that open what is kept there
};

/// How many states these NFs keep between runs, counted by start().
struct StateCounts {
  std::atomic<std::size_t> kept{0};
  std::atomic<std::size_t> fresh{0};  ///< of those, there was no file
};

/// What a record line says of a packet besides its verdict.
struct RecordedPacket {
  std::uint32_t spi = 0;
  std::uint64_t sequence = 0;  ///< whole number
};

inline std::uint64_t whole_sequence(Aux const& aux) { return std::uint64_t{aux.sequence_high} << 32 | aux.sequence; }

/// Drops the packet; the record line names SPI and sequence number where they are known.
void drop(packet::Packet const& packet, DropReasonId reason, std::optional<RecordedPacket> what, nf::Outcome& outcome);
/// The record line of a packet that goes on. Precondition: outcome.recording().
void pass(packet::Packet const& packet, RecordedPacket what, nf::Outcome& outcome);

/// What both directions have in common.
class IpsecNf : public nf::Nf, public nf::Persistent, public nf::Portable {
 public:
  /// Where packets leave for a network, numbers and windows go on where the last run ended (Reservations). Where they
  /// go to a capture each run starts from the SA file, so that the same input gives the same bytes.
  Status start(nf::RunContext const& context) override;
  void join(nf::RunContext const& context) override { context_ = context; }
  Status finish() override;
  /// What was opened for adopt(), which never came, is left as it was.
  ~IpsecNf() override;
  /// Opens the states of associations that `before` has not. FailedPrecondition: another direction, or folder of
  /// states; else as Reservations::open().
  Status prepare_to_adopt(nf::Nf const& before) override;
  /// Associations with the same keys go on at their numbers, and with their windows.
  void adopt(nf::Nf& before) override;
  /// Opens the states that nobody has now; the others are taken for those of the NF that this one goes on for, and are
  /// opened by load(), or not at all. Errors: as Reservations::open().
  Status prepare_to_load() override;
  /// Of each association, by its name.
  void save(nf::StateWriter& state) const override;
  /// Associations with the same keys go on. FailedPrecondition: as prepare_to_adopt().
  Status load(nf::StateReader& state) override;
  nf::Hints hints() const override;
  /// Outer headers, ESP, padding and ICV, as if all associations had as much traffic, and all lengths were as frequent.
  double grows_by() const override;
  /// With all associations, whichever shard this is: a device has these tables once for all shards.
  Result<nf::KernelSide> kernel_side() const override;
  /// Of all shards, if they have started.
  std::vector<std::string> start_report() const override;

 protected:
  IpsecNf(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
          std::unique_ptr<cipher::CryptoBurst> crypto, nf::Shard shard)
      : tunnels_(std::move(tunnels)),
        states_(std::move(states)),
        sessions_(tunnels_->sessions),
        crypto_(std::move(crypto)),
        shard_(shard) {}

  /// Whether this shard is the one that assigns the association's numbers, or keeps its window.
  bool owns(std::uint32_t number) const { return number % shard_.count == shard_.index; }
  /// Takes association `number` up where the run before left it.
  virtual void resume(std::uint32_t number, SavedState const& state) = 0;
  /// Where it is now.
  virtual SavedState state_of(std::uint32_t number) const = 0;
  /// Whether the association's numbers are kept beyond a run; then take() must be asked before they are used.
  bool is_kept(std::uint32_t number) const { return !kept_.empty() && kept_[number].has_value(); }
  /// As Reservations::take() for an association. Precondition: is_kept().
  std::uint64_t take(std::uint32_t number, std::uint64_t next) {
    return stores_[kept_[number]->store].reservations->take(kept_[number]->entry, next);
  }

  RecordedPacket recorded(Aux const& aux) const {
    return {sessions_[aux.association].association.spi, whole_sequence(aux)};
  }

  std::shared_ptr<const Tunnels> tunnels_;
  std::shared_ptr<StateCounts> states_;
  std::span<const Session> sessions_;  ///< those of tunnels_
  std::unique_ptr<cipher::CryptoBurst> crypto_;
  nf::Shard shard_;

 private:
  /// States that were opened together: at the start, or when associations came to a running chain.
  struct Store {
    std::unique_ptr<Reservations> reservations;
    std::vector<std::string> names;  ///< of its entries
    std::vector<SavedState> left;    ///< where each goes on, or ended, when no association has it
  };
  /// Where an association's state is.
  struct Kept {
    std::size_t store;
    std::uint32_t entry;
  };
  std::string state_name(Association const& association) const;
  /// What is kept of the association between runs; none where it needs nothing.
  std::optional<Reservations::Entry> entry_for(Association const& association);

  Result<std::optional<Store>> open(std::vector<Reservations::Entry> entries) const;
  void find_kept();
  void drop_coming();

  std::optional<nf::RunContext> context_;     ///< none: nobody has started it
  std::vector<Store> stores_;                 ///< of what it owns, in a run whose packets leave for a network
  std::vector<std::string> names_;            ///< by association, of its state; empty: it has none, or in no such run
  std::vector<std::optional<Kept>> kept_;     ///< by association
  std::optional<Store> coming_;               ///< until adopt(), or load()
  std::vector<Reservations::Entry> awaited_;  ///< states that another one has, until load()
  std::vector<std::optional<std::uint32_t>> same_before_;  ///< until then, by association: its number in the NF before
};

/// Reads the NF's configuration (see README.md).
Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

}  // namespace catena::ipsec

/// `type: ipsec`.
catena::nf::Descriptor const& catena_nf_ipsec();
