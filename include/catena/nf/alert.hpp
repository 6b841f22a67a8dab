// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::nf {

/// One alert for `--eve`: what the NF knows of it. The framework adds time, addresses, and the names of chain and NF.
struct AlertLine {
  std::uint64_t packet;  ///< Packet::index()
  std::string alert;     ///< a JSON object as in Suricata's EVE: {"action":"allowed","gid":1,"signature_id":7,...}
};

/// What an NF implements, beside Nf, that has more to say of an alert than its verdict. Thread rule: as Nf.
class Alerting {
 public:
  virtual ~Alerting() = default;
  /// From now on alerts are wanted. Without this call there are none.
  virtual void keep_alerts() = 0;
  /// Those of the packets that complete() has seen, in its order; a packet may have several. The caller removes what it
  /// takes.
  virtual std::vector<AlertLine>& alerts() = 0;
};

}  // namespace catena::nf
