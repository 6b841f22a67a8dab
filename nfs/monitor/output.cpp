// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <catena/core/text.hpp>

#include <utility>

namespace catena::monitor {
namespace {

class FileOutput final : public Output {
 public:
  FileOutput(std::shared_ptr<nf::Outputs> outputs, std::string path)
      : outputs_(std::move(outputs)), path_(std::move(path)) {}

  void write(std::span<const std::uint8_t> bytes, std::uint64_t records) override {
    open();
    if (error_.ok()) {
      error_ = file_->write(std::as_bytes(bytes));
    }
    if (!error_.ok()) {
      lose(records);
    }
  }

  Status finish() override {
    open();
    if (error_.ok()) {
      error_ = file_->close();
    }
    return error_.ok() ? absl::OkStatus()
                       : absl::DataLossError(
                             concat(std::string(error_.message()), "; ", lost_records(), " flow records are missing"));
  }

 private:
  void open() {
    if (file_ != nullptr || !error_.ok()) {
      return;
    }
    Result<std::unique_ptr<nf::Output>> file = outputs_->open_file(path_);
    error_ = file.status();
    file_ = file.ok() ? *std::move(file) : nullptr;
  }

  std::shared_ptr<nf::Outputs> outputs_;
  std::string path_;
  std::unique_ptr<nf::Output> file_;
  Status error_;
};

class UdpOutput final : public Output {
 public:
  explicit UdpOutput(std::unique_ptr<nf::Output> receiver) : receiver_(std::move(receiver)) {}

  void write(std::span<const std::uint8_t> bytes, std::uint64_t records) override {
    const Status status = receiver_->write(std::as_bytes(bytes));
    if (status.ok()) {
      last_records_ = records;
    } else if (absl::IsDataLoss(status)) {  // the one before was refused
      lose(std::exchange(last_records_, records));
    } else {
      lose(records);
    }
  }
  Status finish() override { return absl::OkStatus(); }

 private:
  std::unique_ptr<nf::Output> receiver_;
  std::uint64_t last_records_ = 0;  // of the last datagram sent
};

}  // namespace

std::unique_ptr<Output> file_output(std::shared_ptr<nf::Outputs> outputs, std::string path) {
  return std::make_unique<FileOutput>(std::move(outputs), std::move(path));
}

Result<std::unique_ptr<Output>> udp_output(nf::Outputs& outputs, std::string const& receiver) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<nf::Output> connected, outputs.connect(receiver));
  return std::make_unique<UdpOutput>(std::move(connected));
}

}  // namespace catena::monitor
