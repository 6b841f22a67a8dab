// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/outputs.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace catena::monitor {

/// Destination of an exporter's bytes. Failed writes are counted, never retried. Not thread safe.
class Output {
 public:
  virtual ~Output() = default;
  Output() = default;
  Output(Output const&) = delete;
  Output& operator=(Output const&) = delete;

  /// Writes `bytes`, which contain `records` flow records.
  virtual void write(std::span<const std::uint8_t> bytes, std::uint64_t records) = 0;
  /// After the last write(). DataLoss, with destination and reason, if anything could not be written.
  virtual Status finish() = 0;

  std::uint64_t lost_records() const { return lost_records_; }

 protected:
  void lose(std::uint64_t records) { lost_records_ += records; }

 private:
  std::uint64_t lost_records_ = 0;
};

/// A file, created or truncated at the first write() or finish(), so that reading a configuration touches no file.
/// After the first error nothing more is written. `path`: as nf::Outputs::open_file().
std::unique_ptr<Output> file_output(std::shared_ptr<nf::Outputs> outputs, std::string path);

/// Datagrams to `receiver`, HOST:PORT, one per write(), which never waits: a datagram not accepted immediately by the
/// system is lost. finish() never fails. Errors: as nf::Outputs::connect().
Result<std::unique_ptr<Output>> udp_output(nf::Outputs& outputs, std::string const& receiver);

}  // namespace catena::monitor
