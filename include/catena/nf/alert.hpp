// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::nf {

/// One alert for `--eve`: the NF's members of it. The framework adds time, addresses, and the names of chain and NF.
struct AlertLine {
  std::uint64_t packet;  ///< Packet::index()
  std::string alert;     ///< a JSON object as in Suricata's EVE: {"action":"allowed","gid":1,"signature_id":7,...}
};

/// Implemented, besides Nf, by an NF whose alerts have more detail than a verdict. Thread rule: as Nf.
class Alerting {
 public:
  virtual ~Alerting() = default;
  /// Enables alerts. Without this call alerts() stays empty.
  virtual void keep_alerts() = 0;
  /// The alerts of the packets seen by complete(), in its order; a packet may have several. The caller removes the
  /// alerts that it takes.
  virtual std::vector<AlertLine>& alerts() = 0;
};

}  // namespace catena::nf
