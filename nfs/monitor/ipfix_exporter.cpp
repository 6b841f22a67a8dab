// SPDX-License-Identifier: Apache-2.0
#include <catena/core/time.hpp>
#include <catena/packet/headers.hpp>

#include <array>
#include <span>
#include <vector>

#include "exporter.hpp"

namespace catena::monitor {
namespace {

// Clauses are of RFC 7011; element numbers are IANA's, first defined in RFC 5102.
constexpr std::uint16_t kVersion = 10;
constexpr std::size_t kMessageHeaderBytes = 16;  // 3.1
constexpr std::size_t kSetHeaderBytes = 4;       // 3.3.2
constexpr std::uint16_t kTemplateSet = 2;
constexpr std::uint16_t kPortsTemplate = 256;
constexpr std::uint16_t kIcmpTemplate = 257;
constexpr std::uint64_t kMillisecondNs = 1'000'000;

/// Field specifier of a template record (3.2).
struct FieldSpecifier {
  std::uint16_t element;
  std::uint16_t bytes;
};

constexpr FieldSpecifier kSourceAddress{8, 4};
constexpr FieldSpecifier kDestinationAddress{12, 4};
constexpr FieldSpecifier kSourcePort{7, 2};
constexpr FieldSpecifier kDestinationPort{11, 2};
constexpr FieldSpecifier kIcmpTypeCode{32, 2};
constexpr FieldSpecifier kProtocol{4, 1};
constexpr FieldSpecifier kClassOfService{5, 1};
constexpr FieldSpecifier kTcpControlBits{6, 2};
constexpr FieldSpecifier kPackets{2, 8};
constexpr FieldSpecifier kOctets{1, 8};
constexpr FieldSpecifier kFlowStart{152, 8};  // milliseconds
constexpr FieldSpecifier kFlowEnd{153, 8};
constexpr FieldSpecifier kFlowEndReason{136, 1};

constexpr std::array kPortsFields{
    kSourceAddress, kDestinationAddress, kSourcePort, kDestinationPort, kProtocol,      kClassOfService, kPackets,
    kOctets,        kFlowStart,          kFlowEnd,    kFlowEndReason,   kTcpControlBits};
constexpr std::array kIcmpFields{
    kSourceAddress, kDestinationAddress, kIcmpTypeCode, kProtocol,     kClassOfService, kPackets,
    kOctets,        kFlowStart,          kFlowEnd,      kFlowEndReason};

constexpr std::size_t record_bytes(std::span<const FieldSpecifier> fields) {
  std::size_t bytes = 0;
  for (FieldSpecifier const& field : fields) {
    bytes += field.bytes;
  }
  return bytes;
}

/// Appends integers in network order.
class Writer {
 public:
  explicit Writer(std::vector<std::uint8_t>& bytes) : bytes_(&bytes) {}
  template <typename T>
  Writer& put(T value) {
    for (std::size_t shift = sizeof(T) * 8; shift > 0; shift -= 8) {
      bytes_->push_back(static_cast<std::uint8_t>(value >> (shift - 8)));
    }
    return *this;
  }

 private:
  std::vector<std::uint8_t>* bytes_;
};

class IpfixExporter final : public Exporter {
 public:
  IpfixExporter(std::unique_ptr<Output> output, IpfixOptions options) : Exporter(std::move(output)), options_(options) {
    message_.reserve(kMaxMessageBytes);
  }

  void add(FlowRecord const& record, std::uint64_t clock_ns) override {
    const bool is_icmp = record.key.whole().protocol == packet::kProtocolIcmp;
    const std::uint16_t wanted = is_icmp ? kIcmpTemplate : kPortsTemplate;
    const std::size_t bytes = is_icmp ? record_bytes(kIcmpFields) : record_bytes(kPortsFields);
    const std::size_t set_header = wanted == set_id_ ? 0 : kSetHeaderBytes;
    if (message_.size() + set_header + bytes > kMaxMessageBytes) {
      flush(clock_ns);
    }
    if (message_.empty()) {
      begin_message(clock_ns);
    }
    if (wanted != set_id_) {
      end_set();
      begin_set(wanted);
    }
    put_record(record, is_icmp);
    ++records_;
  }

  void flush(std::uint64_t clock_ns) override {
    const bool has_templates = !message_.empty() && messages_ == 1;
    if (!has_templates && are_due_by_time(clock_ns)) {
      send_templates(clock_ns);
    }
    if (message_.empty()) {
      return;
    }
    end_set();
    templates_ns_ = has_templates ? clock_ns : templates_ns_;
    send(message_, records_, clock_ns);
    // data records before this message; lost ones count, so that the collector sees that they are missing
    sequence_ += records_;
    records_ = 0;
    message_.clear();
  }

 private:
  void begin_message(std::uint64_t clock_ns) {
    put_header(message_);
    const bool are_due_by_count = options_.template_refresh != 0 && messages_ >= options_.template_refresh;
    if (messages_ == 0 || are_due_by_count || are_due_by_time(clock_ns)) {
      put_templates(message_);
      messages_ = 0;
    }
    ++messages_;
  }

  bool are_due_by_time(std::uint64_t clock_ns) const {
    return messages_ != 0 && options_.template_refresh_ns != 0 &&
           clock_ns - templates_ns_ >= options_.template_refresh_ns;
  }

  /// Sends the templates before the open message, where they were not due yet.
  void send_templates(std::uint64_t clock_ns) {
    std::vector<std::uint8_t> message;
    put_header(message);
    put_templates(message);
    send(message, 0, clock_ns);
    templates_ns_ = clock_ns;
    messages_ = message_.empty() ? 1 : 2;
  }

  void put_header(std::vector<std::uint8_t>& message) const {
    Writer(message)
        .put(kVersion)
        .put(std::uint16_t{0})  // length and export time: send() knows them
        .put(std::uint32_t{0})
        .put(sequence_)
        .put(options_.observation_domain);
  }

  static void put_templates(std::vector<std::uint8_t>& message) {
    const std::size_t start = message.size();
    Writer(message).put(kTemplateSet).put(std::uint16_t{0});
    put_template(message, kPortsTemplate, kPortsFields);
    put_template(message, kIcmpTemplate, kIcmpFields);
    put_set_length(message, start);
  }

  void send(std::vector<std::uint8_t>& message, std::uint64_t records, std::uint64_t clock_ns) {
    packet::store_be16(&message[2], static_cast<std::uint16_t>(message.size()));
    packet::store_be32(&message[4], static_cast<std::uint32_t>(clock_ns / kNsPerSecond));
    output().write(message, records);
  }

  void begin_set(std::uint16_t id) {
    set_id_ = id;
    set_start_ = message_.size();
    Writer(message_).put(id).put(std::uint16_t{0});
  }
  /// Gives the set that is open its length; none is open after this.
  void end_set() {
    if (set_id_ != 0) {
      put_set_length(message_, set_start_);
      set_id_ = 0;
    }
  }
  static void put_set_length(std::vector<std::uint8_t>& message, std::size_t start) {
    packet::store_be16(&message[start + 2], static_cast<std::uint16_t>(message.size() - start));
  }

  static void put_template(std::vector<std::uint8_t>& message, std::uint16_t id,
                           std::span<const FieldSpecifier> fields) {
    Writer writer(message);
    writer.put(id).put(static_cast<std::uint16_t>(fields.size()));
    for (FieldSpecifier const& field : fields) {
      writer.put(field.element).put(field.bytes);
    }
  }

  /// In the order of kPortsFields or kIcmpFields.
  void put_record(FlowRecord const& record, bool is_icmp) {
    const packet::FlowKey key = record.key.whole();
    Writer writer(message_);
    writer.put(key.source.v4()).put(key.destination.v4());
    if (!is_icmp) {
      writer.put(key.source_port);
    }
    writer.put(key.destination_port)
        .put(key.protocol)
        .put(record.tos)
        .put(record.packets)
        .put(record.bytes)
        .put(record.first_ns / kMillisecondNs)
        .put(record.last_ns / kMillisecondNs)
        .put(static_cast<std::uint8_t>(record.end_reason));
    if (!is_icmp) {
      writer.put(record.tcp_flags);
    }
  }

  IpfixOptions options_;
  std::vector<std::uint8_t> message_;  // empty, or a message that waits for more records
  std::uint32_t records_ = 0;          // in message_
  std::uint64_t messages_ = 0;         // since the templates, their message included; 0: no message yet
  std::uint64_t templates_ns_ = 0;     // when they were sent
  std::uint32_t sequence_ = 0;         // 3.1: data records sent so far, modulo 2^32
  std::uint16_t set_id_ = 0;           // of the open set, 0: none
  std::size_t set_start_ = 0;
};

}  // namespace

std::unique_ptr<Exporter> ipfix_exporter(std::unique_ptr<Output> output, IpfixOptions options) {
  return std::make_unique<IpfixExporter>(std::move(output), options);
}

}  // namespace catena::monitor
