// SPDX-License-Identifier: Apache-2.0
#include "ipsec.hpp"

#include <catena/core/text.hpp>

#include "decryptor.hpp"
#include "device_state.hpp"
#include "encryptor.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace catena::ipsec {
namespace {

constexpr std::array<nf::PacketOutput, 1> kPacketOutputs{
    {{"protected", "packets carried by a tunnel; others pass (RFC 4301: PROTECT, BYPASS)"}}};

constexpr std::array<nf::DropReason, 13> kDropReasons{{
    {"no_sa", "no association for the packet: no selector matches, or unknown SPI and destination"},
    {"bad_icv", "the integrity check value is wrong"},
    {"replay", "the sequence number was seen before, or is left of the replay window"},
    {"malformed", "not decodable ESP: a fragment, a wrong size, or not an IPv4 datagram inside"},
    {"too_long", "the encapsulated packet would exceed its slot, or the mtu where it may not be cut"},
    {"sequence_exhausted", "the association has used its last sequence number and needs new keys"},
    {"selector_mismatch", "decrypted, but outside the selector of its association"},
    {"dummy", "a dummy packet of traffic flow confidentiality"},
    {"crypto_failed", "neither library nor kernel finished the packet"},
    {"cleartext", "arrived in the clear, but matches the selector of an association"},
    {"state_failed", "no sequence number could be reserved in the state folder"},
    {"fragment", "a fragment without ports, and only selectors with ports may match it"},
    {"congestion", "congestion was met in the tunnel, and the packet inside cannot be marked"},
}};

constexpr std::array<nf::ConfigKey, 5> kConfigKeys{{
    {"direction", "encrypt | decrypt", "", "direction of packets through the tunnels"},
    {"sa", "file", "", "YAML file with the security associations"},
    {"mtu", "integer 68..2034", "1500", "encrypt only: longest outer IPv4 datagram, bytes"},
    {"state", "folder", "the SA file's name and .state",
     "folder of the sequence numbers kept between runs with a live tx"},
    {"cleartext", "drop | pass", "drop", "decrypt only: packets in the clear matching an association's selector"},
}};

/// Of save(). Before it had a version, a state began with a bool.
constexpr std::uint8_t kStateVersion = 2;

constexpr std::int64_t kMinMtu = 68;  // RFC 791
constexpr std::int64_t kDefaultMtu = 1500;
constexpr std::int64_t kMaxMtu = packet::kSlotBytes - packet::kEthernetBytes;
static_assert(kMaxMtu == 2034);

Result<Cleartext> read_cleartext(nf::Config& config) {
  const Result<std::string> word = config.one_of("cleartext", {"drop", "pass"}, "drop");
  if (!word.ok()) {
    return word.status();
  }
  return std::string_view(*word) == "drop" ? Cleartext::kDrop : Cleartext::kPass;
}

Result<std::string> read_state_folder(nf::Config& config, std::string const& sa_path) {
  return config.output_folder("state", sa_path + ".state");
}

Result<Direction> read_direction(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string word, config.one_of("direction", {"encrypt", "decrypt"}));
  return word == "encrypt" ? Direction::kEncrypt : Direction::kDecrypt;
}

std::string state_name(Association const& association, Direction direction, cipher::CryptoBurst& crypto) {
  std::vector<std::uint8_t> identity;
  const auto add = [&identity](auto const& bytes) { identity.insert(identity.end(), bytes.begin(), bytes.end()); };
  if (direction == Direction::kEncrypt) {
    // a number is used up with the key, whatever the association's name is
    add(association.encryption_key);
    add(association.salt);
    return concat("encrypt-", crypto.fingerprint(identity));
  }
  add(association.authentication_key);
  std::array<std::uint8_t, 8> name;
  packet::store_be32(name.data(), association.spi);
  packet::store_be32(name.data() + 4, association.destination);
  add(name);
  return concat("decrypt-", crypto.fingerprint(identity));
}

/// Whether a selector has ports, and no other one takes what shows none of the same datagrams.
bool lacks_rest(Selector const& selector, std::span<const Session> sessions) {
  const auto is_without = [&](std::uint8_t protocol) {
    return (selector.protocol < 0 || selector.protocol == protocol) &&
           std::ranges::none_of(sessions, [&](Session const& other) {
             return other.association.selector.matches_rest_of(selector, protocol);
           });
  };
  return selector.needs_ports && (is_without(packet::kProtocolTcp) || is_without(packet::kProtocolUdp));
}

/// What the operator should know of selectors with ports; empty: nothing.
std::string warn_of_ports(std::span<const Session> sessions, Direction direction) {
  std::size_t count = 0;
  std::uint32_t first = 0;
  for (Session const& session : sessions) {
    if (lacks_rest(session.association.selector, sessions)) {
      first = count++ == 0 ? session.association.spi : first;
    }
  }
  if (count == 0) {
    return {};
  }
  return concat(nf::kWarning, count == 1 ? "the selector of the association with SPI " : "the selector of ",
                count == 1 ? std::to_string(first) : concat(count, " associations, the first with SPI ", first, ","),
                " has ports, which only the first fragment of a datagram shows: the others do not match it (RFC 4301, "
                "section 7.2) and are dropped as `",
                direction == Direction::kEncrypt ? "fragment" : "selector_mismatch",
                "`. An association with `destination_port: opaque` and the same addresses carries them");
}

void name_keys(std::span<const Association> associations, Direction direction, cipher::CryptoBurst& crypto) {
  for (Association const& association : associations) {
    if (direction == Direction::kEncrypt) {
      nf::Config::encrypts_with(state_name(association, direction, crypto),
                                concat("the association with SPI ", association.spi), association.spi);
    } else {
      nf::Config::decrypts_with(association.spi);
    }
  }
}

Status name_outputs(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const Direction direction, read_direction(config));
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("sa"));
  CATENA_RETURN_IF_ERROR(read_state_folder(config, path).status());
  CATENA_ASSIGN_OR_RETURN(const std::vector<Association> associations, load_associations(path, direction));
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<cipher::CryptoBurst> crypto, cipher::CryptoBurst::create());
  name_keys(associations, direction, *crypto);
  return absl::OkStatus();
}

}  // namespace

Owners::Owners(std::vector<std::string> names, std::uint32_t shards) : names_(std::move(names)) {
  for (std::size_t number = 0; number < names_.size(); ++number) {
    shards_.push_back(static_cast<std::uint32_t>(number % shards));
    by_name_.emplace(names_[number], shards_.back());
  }
}

void Owners::continue_from(Owners const& before) {
  std::unordered_map<std::string, std::uint32_t> by_name = before.by_name_;
  for (std::size_t number = 0; number < names_.size(); ++number) {
    shards_[number] = by_name.emplace(names_[number], shards_[number]).first->second;
  }
  by_name_ = std::move(by_name);
}

IpsecNf::IpsecNf(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
                 std::unique_ptr<cipher::CryptoBurst> crypto, nf::Shard shard, std::shared_ptr<Owners> owners)
    : tunnels_(std::move(tunnels)),
      states_(std::move(states)),
      sessions_(tunnels_->sessions),
      crypto_(std::move(crypto)),
      shard_(shard),
      owners_(std::move(owners)) {
  if (owners_ == nullptr) {
    std::vector<std::string> names;
    for (Session const& session : sessions_) {
      names.push_back(state_name(session.association));
    }
    owners_ = std::make_shared<Owners>(std::move(names), shard.count);
  }
}

std::string IpsecNf::state_name(Association const& association) const {
  return ipsec::state_name(association, tunnels_->direction, *crypto_);
}

std::optional<Reservations::Entry> IpsecNf::entry_for(Association const& association) {
  const bool encrypts = tunnels_->direction == Direction::kEncrypt;
  if (!encrypts && !association.anti_replay) {
    return std::nullopt;
  }
  const bool from_file = encrypts || association.extended_sequence;
  return Reservations::Entry{.name = state_name(association),
                             .spi = association.spi,
                             .first = from_file ? association.first_sequence : 1,
                             .end = association.sequence_end(),
                             .window = association.replay_window};
}

Status IpsecNf::start(nf::RunContext const& context) {
  drop_coming();
  context_ = context;
  if (!context.live_tx) {
    return absl::OkStatus();
  }
  std::vector<Reservations::Entry> own;
  std::vector<Reservations::Entry> all;
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    const std::optional<Reservations::Entry> entry = entry_for(sessions_[i].association);
    names_.push_back(entry && owns(i) ? entry->name : std::string());
    if (entry) {
      all.push_back(*entry);
    }
    if (entry && owns(i)) {
      own.push_back(*entry);
    }
  }
  if (shard_.index == 0 && own.size() < all.size()) {
    // a run that another shard is going to refuse must not cost numbers of this one
    CATENA_RETURN_IF_ERROR(Reservations::check(*tunnels_->outputs, tunnels_->state_folder, tunnels_->direction,
                                               context.new_keys, std::move(all)));
  }
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Store> store, open(std::move(own)));
  if (store == nullptr) {
    return absl::OkStatus();
  }
  states_->kept += store->reservations->size();
  states_->fresh += store->reservations->new_states();
  stores_.push_back(std::move(store));
  find_kept();
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    if (is_kept(i)) {
      resume(i, stores_.front()->left[kept_[i]->entry]);
    }
  }
  return absl::OkStatus();
}

/// With where they go on as where they ended; null for no entries.
Result<std::shared_ptr<IpsecNf::Store>> IpsecNf::open(std::vector<Reservations::Entry> entries) const {
  if (entries.empty()) {
    return std::shared_ptr<Store>();
  }
  auto store = std::make_shared<Store>();
  for (Reservations::Entry const& entry : entries) {
    store->names.push_back(entry.name);
  }
  CATENA_ASSIGN_OR_RETURN(store->reservations,
                          Reservations::open(*tunnels_->outputs, tunnels_->state_folder, tunnels_->direction,
                                             context_->new_keys, std::move(entries)));
  for (std::uint32_t entry = 0; entry < store->names.size(); ++entry) {
    store->left.push_back(store->reservations->start(entry));
  }
  return store;
}

/// Looks for the associations' names in the stores.
void IpsecNf::find_kept() {
  std::unordered_map<std::string_view, Kept> by_name;
  for (std::size_t store = 0; store < stores_.size(); ++store) {
    for (std::uint32_t entry = 0; entry < stores_[store]->names.size(); ++entry) {
      if (!stores_[store]->names[entry].empty()) {
        by_name.emplace(stores_[store]->names[entry], Kept{store, entry});
      }
    }
  }
  kept_.assign(sessions_.size(), std::nullopt);
  for (std::uint32_t i = 0; i < names_.size(); ++i) {
    if (const auto found = by_name.find(names_[i]); found != by_name.end()) {
      kept_[i] = found->second;
    }
  }
}

/// Writes where the kept associations are into their stores.
void IpsecNf::note_states() {
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    if (is_kept(i)) {
      stores_[kept_[i]->store]->left[kept_[i]->entry] = state_of(i);
    }
  }
}

/// Closes the states of associations that the new configuration lacks, in any shard. Without this, a chain whose keys
/// change would have ever more files and threads.
void IpsecNf::close_unused() {
  std::unordered_set<std::string> used;
  for (Session const& session : sessions_) {
    if (std::optional<Reservations::Entry> entry = entry_for(session.association)) {
      used.insert(std::move(entry->name));
    }
  }
  for (std::shared_ptr<Store> const& store : stores_) {
    for (std::uint32_t entry = 0; entry < store->names.size(); ++entry) {
      if (!store->names[entry].empty() && !used.contains(store->names[entry])) {
        store->names[entry].clear();
        store->reservations->close(entry, store->left[entry]);
      }
    }
  }
}

Status IpsecNf::finish() {
  note_states();
  Status status;
  for (std::shared_ptr<Store> const& store : stores_) {
    if (--store->users == 0) {
      status.Update(store->reservations->finish(store->left));
    }
  }
  return status;
}

IpsecNf::~IpsecNf() { drop_coming(); }

/// What was opened for an NF that did not come is left as it was; a process that ends without this leaves what was
/// reserved.
void IpsecNf::drop_coming() {
  if (coming_ != nullptr) {
    coming_->reservations->finish(coming_->left).IgnoreError();  // it says itself what went wrong
  }
  coming_.reset();
  awaited_.clear();
  names_.clear();
}

Status IpsecNf::prepare_migration(std::span<nf::Nf const* const> before) {
  auto const& old = static_cast<IpsecNf const&>(*before.front());
  if (old.tunnels_->direction != tunnels_->direction) {
    return absl::FailedPreconditionError("its direction has changed");
  }
  const bool is_kept_between_runs = old.context_ && old.context_->live_tx;
  if (is_kept_between_runs && !context_) {
    context_ = nf::RunContext{.live_tx = true};
  }
  if (is_kept_between_runs && old.tunnels_->state_folder != tunnels_->state_folder) {
    return absl::FailedPreconditionError("its state folder has changed");
  }
  std::unordered_map<std::string, std::uint32_t> before_by_name;
  for (std::uint32_t i = 0; i < old.sessions_.size(); ++i) {
    before_by_name.emplace(state_name(old.sessions_[i].association), i);
  }
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    const auto found = before_by_name.find(state_name(sessions_[i].association));
    same_before_.push_back(found == before_by_name.end() ? std::nullopt : std::optional(found->second));
  }
  if (before.size() == shard_.count) {
    owners_->continue_from(*old.owners_);
    for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
      begin(i);
    }
  }
  std::unordered_set<std::string_view> opened;
  for (nf::Nf const* const each : before) {
    for (std::shared_ptr<Store> const& store : static_cast<IpsecNf const&>(*each).stores_) {
      store->reservations->await_closed();  // an association may come back
      opened.insert(store->names.begin(), store->names.end());
    }
  }
  std::vector<Reservations::Entry> coming;
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    std::optional<Reservations::Entry> entry =
        is_kept_between_runs && owns(i) ? entry_for(sessions_[i].association) : std::nullopt;
    names_.push_back(entry ? entry->name : std::string());
    if (entry && !opened.contains(entry->name)) {
      coming.push_back(std::move(*entry));
    }
  }
  if (context_ && context_->is_trial) {
    return Reservations::check(*tunnels_->outputs, tunnels_->state_folder, tunnels_->direction, context_->new_keys,
                               std::move(coming));
  }
  CATENA_ASSIGN_OR_RETURN(coming_, open(std::move(coming)));
  return absl::OkStatus();
}

/// The state of an association in the NF that had it.
std::optional<SavedState> IpsecNf::state_before(std::uint32_t number, std::span<nf::Nf* const> before) const {
  if (!same_before_[number] || !owns(number)) {
    return std::nullopt;
  }
  const std::uint32_t theirs = *same_before_[number];
  const std::uint32_t owner = (*static_cast<IpsecNf const&>(*before.front()).owners_)[theirs];
  return static_cast<IpsecNf const&>(*before[owner]).state_of(theirs);
}

void IpsecNf::migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& /*is_mine*/) {
  for (nf::Nf* const each : before) {
    auto& old = static_cast<IpsecNf&>(*each);
    old.note_states();
    for (std::shared_ptr<Store> const& store : old.stores_) {
      if (!store->reservations->is_closed() && std::ranges::find(stores_, store) == stores_.end()) {
        store->users = shard_.count;
        stores_.push_back(store);
      }
    }
  }
  if (coming_ != nullptr) {
    stores_.push_back(std::exchange(coming_, nullptr));
  }
  find_kept();
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    const std::optional<SavedState> before_this = state_before(i, before);
    if (is_kept(i)) {
      SavedState state = stores_[kept_[i]->store]->left[kept_[i]->entry];
      if (before_this && before_this->next > state.next) {  // its state was not kept for a while
        state = {.next = before_this->next, .seen = {}};
      }
      resume(i, state);
    } else if (before_this) {
      resume(i, *before_this);
    }
  }
  if (shard_.index + 1 == shard_.count) {
    for (nf::Nf* const each : before) {
      static_cast<IpsecNf&>(*each).kept_.clear();
      static_cast<IpsecNf&>(*each).stores_.clear();  // all shards of this NF have them
    }
    close_unused();
  }
}

Status IpsecNf::prepare_to_load() {
  if (!context_ || !context_->live_tx) {
    return absl::OkStatus();
  }
  std::vector<Reservations::Entry> coming;
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    std::optional<Reservations::Entry> entry = entry_for(sessions_[i].association);
    names_.push_back(entry && owns(i) ? entry->name : std::string());
    if (entry && owns(i)) {
      const bool is_taken = StateFile::is_taken(*tunnels_->outputs, tunnels_->state_folder, entry->name);
      (is_taken ? awaited_ : coming).push_back(std::move(*entry));
    }
  }
  CATENA_ASSIGN_OR_RETURN(coming_, open(std::move(coming)));
  states_->kept += (coming_ != nullptr ? coming_->reservations->size() : 0) + awaited_.size();
  states_->fresh += coming_ != nullptr ? coming_->reservations->new_states() : 0;
  return absl::OkStatus();
}

void IpsecNf::save(nf::StateWriter& state) const {
  state.put(kStateVersion);
  state.put(tunnels_->direction == Direction::kEncrypt);
  state.put(sessions_.size());
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    const SavedState now = state_of(i);
    state.put(state_name(sessions_[i].association));
    state.put(now.next);
    state.put(now.seen.size());
    for (const std::uint64_t word : now.seen) {
      state.put(word);
    }
  }
}

Status IpsecNf::load(nf::StateReader& state) {
  if (state.get<std::uint8_t>() != kStateVersion) {
    return absl::DataLossError("no state of associations, or of another version");
  }
  const bool is_of_encryption = state.get<bool>();
  const auto count = state.get<std::size_t>();
  std::unordered_map<std::string, SavedState> by_name;
  for (std::size_t i = 0; i < count && state.is_sound(); ++i) {
    std::string name = state.get_text();
    const auto next = state.get<std::uint64_t>();
    const auto words = state.get<std::size_t>();
    if (next == 0 || words > ReplayWindow::words_of(ReplayWindow::kMaxPackets)) {
      return absl::DataLossError("no state of associations: 0 is not a sequence number, and no window is so large");
    }
    ReplayWindow::Seen seen(words);
    for (std::uint64_t& word : seen) {
      word = state.get<std::uint64_t>();
    }
    by_name.emplace(std::move(name), SavedState{.next = next, .seen = std::move(seen)});
  }
  if (!state.is_done()) {
    return absl::DataLossError("no state of associations");
  }
  if (is_of_encryption != (tunnels_->direction == Direction::kEncrypt)) {
    return absl::FailedPreconditionError("its direction has changed");
  }
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Store> awaited, open(awaited_));
  std::unordered_set<std::string> of_the_other;
  for (Reservations::Entry const& entry : awaited_) {
    of_the_other.insert(entry.name);
  }
  for (std::shared_ptr<Store>* const store : {&coming_, &awaited}) {
    if (*store != nullptr) {
      stores_.push_back(std::exchange(*store, nullptr));
    }
  }
  awaited_.clear();
  find_kept();
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    const std::string name = state_name(sessions_[i].association);
    const auto found = by_name.find(name);
    const bool is_there = found != by_name.end() && owns(i);
    if (is_there && (!is_kept(i) || of_the_other.contains(name))) {
      resume(i, found->second);  // nearer than what was reserved
    } else if (is_kept(i)) {
      SavedState kept = stores_[kept_[i]->store]->left[kept_[i]->entry];
      if (is_there && found->second.next > kept.next) {  // its state was not kept for a while
        kept = {.next = found->second.next, .seen = {}};
      }
      resume(i, kept);
    }
  }
  return absl::OkStatus();
}

nf::Hints IpsecNf::hints() const {
  constexpr packet::FieldSet kMoved = packet::kFrameFields | packet::fields(packet::kMetaOffset, packet::kMetaLength);
  constexpr packet::FieldSet kLayers = packet::fields(packet::kMetaLayers);
  constexpr packet::FieldSet kFlow = kLayers | packet::fields(packet::kIpv4Protocol, packet::kIpv4Src, packet::kIpv4Dst,
                                                              packet::kL4Sport, packet::kL4Dport);
  nf::Hints hints;
  hints.cr = hints.cw = kMoved;
  hints.gr = hints.gw = kMoved;
  hints.complete_reads = hints.complete_writes = kLayers;
  hints.prepare_reads = kFlow;
  if (tunnels_->direction == Direction::kEncrypt) {
    hints.prepare_reads |= packet::fields(packet::kIpv4Length);  // of datagrams with packet::kSurplus
  } else {
    // prepare() looks for ESP where the payload begins; complete() parses what came out and holds it to the selector
    hints.prepare_reads |= packet::fields(packet::kPayload);
    hints.complete_reads |= kFlow | packet::fields(packet::kEthType, packet::kIpv4Version, packet::kIpv4Length,
                                                   packet::kIpv4Fragment, packet::kTcpFlags, packet::kUdpLength);
  }
  return hints;
}

Result<nf::KernelSide> IpsecNf::kernel_side() const { return make_kernel_side(tunnels_->direction, sessions_); }

double IpsecNf::grows_by() const {
  double bytes = kEspTrailerBytes + kMaxPadBytes / 2.0 + cipher::kIcvBytes;
  for (Session const& session : sessions_) {
    bytes += session.outer.front / static_cast<double>(sessions_.size());
  }
  return tunnels_->direction == Direction::kEncrypt ? bytes : -bytes;
}

std::vector<std::string> IpsecNf::start_report() const {
  std::vector<std::string> lines{concat(tunnels_->direction == Direction::kEncrypt ? "encrypt, " : "decrypt, ",
                                        sessions_.size(), sessions_.size() == 1 ? " association" : " associations",
                                        ", aes-128-ctr, hmac-sha1-96")};
  if (std::string warning = warn_of_ports(sessions_, tunnels_->direction); !warning.empty()) {
    lines.push_back(std::move(warning));
  }
  if (tunnels_->passes_unsupported) {
    lines.push_back(concat(nf::kWarning,
                           "`on_unsupported: pass` lets packets that are not IPv4 pass in the clear, IPv6 "
                           "among them. Write `on_unsupported: drop`"));
  }
  if (states_->kept > 0) {
    lines.push_back(concat("sequence numbers kept in ", tunnels_->state_folder, ": ", states_->fresh.load(), " new, ",
                           states_->kept - states_->fresh, " continued"));
  }
  return lines;
}

void drop(packet::Packet const& packet, DropReasonId reason, std::optional<RecordedPacket> what, nf::Outcome& outcome) {
  outcome.drop(packet, reason);
  if (outcome.recording()) {
    outcome.record(packet, packet::Verdict::kDrop, static_cast<std::int32_t>(reason),
                   what ? concat("\"spi\":", what->spi, ",\"seq\":", what->sequence) : std::string());
  }
}

void pass(packet::Packet const& packet, RecordedPacket what, nf::Outcome& outcome) {
  outcome.record(packet, packet::Verdict::kPass, -1, concat("\"spi\":", what.spi, ",\"seq\":", what.sequence));
}

Result<std::unique_ptr<nf::Nf>> create(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const Direction direction, read_direction(config));
  std::int64_t mtu = kDefaultMtu;
  if (direction == Direction::kEncrypt) {
    CATENA_ASSIGN_OR_RETURN(mtu, config.integer_or("mtu", kDefaultMtu, kMinMtu, kMaxMtu));
  }
  Cleartext cleartext = Cleartext::kDrop;
  if (direction == Direction::kDecrypt) {
    CATENA_ASSIGN_OR_RETURN(cleartext, read_cleartext(config));
  }
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("sa"));
  CATENA_ASSIGN_OR_RETURN(std::string state_folder, read_state_folder(config, path));
  CATENA_RETURN_IF_ERROR(config.finish());
  CATENA_ASSIGN_OR_RETURN(const std::vector<Association> associations, load_associations(path, direction));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<cipher::CryptoBurst> crypto, cipher::CryptoBurst::create());
  name_keys(associations, direction, *crypto);
  auto tunnels = std::make_shared<Tunnels>();
  tunnels->direction = direction;
  tunnels->state_folder = std::move(state_folder);
  tunnels->outputs = config.outputs();
  tunnels->passes_unsupported = config.on_unsupported() == nf::OnUnsupported::kPass && cleartext == Cleartext::kDrop;
  tunnels->sessions.reserve(associations.size());
  for (Association const& association : associations) {
    tunnels->sessions.push_back({association, crypto->expand(keys_of(association)), OuterHeaders(association)});
  }
  auto states = std::make_shared<StateCounts>();
  if (direction == Direction::kEncrypt) {
    return std::make_unique<Encryptor>(std::move(tunnels), std::move(states),
                                       std::make_shared<const OutboundIndex>(associations), std::move(crypto),
                                       config.shard(), static_cast<std::uint32_t>(mtu));
  }
  return std::make_unique<Decryptor>(std::move(tunnels), std::move(states),
                                     std::make_shared<const InboundIndex>(associations), std::move(crypto),
                                     config.shard(), cleartext);
}

}  // namespace catena::ipsec

catena::nf::Descriptor const& catena_nf_ipsec() {
  namespace ipsec = catena::ipsec;
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "ipsec",
      .help = "ESP tunnel mode with AES-128-CTR and HMAC-SHA1-96, one direction (RFC 4303)",
      .needs = catena::packet::kIpv4,
      .on_unsupported_default = catena::nf::OnUnsupported::kDrop,
      .drop_reasons = ipsec::kDropReasons,
      .config = ipsec::kConfigKeys,
      .aux_bytes = sizeof(ipsec::Aux),
      .result_bytes = sizeof(ipsec::PacketResult),
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kOwn,
      .create = &ipsec::create,
      .name_outputs = &ipsec::name_outputs,
      .packet_outputs = ipsec::kPacketOutputs,
  };
  return kDescriptor;
}
