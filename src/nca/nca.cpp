// SPDX-License-Identifier: Apache-2.0
#include <nca/nca.h>

#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include "nca/handles.hpp"
#include "nca/stream.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

// The functions of the API: arguments are checked here, and no exception leaves.

namespace catena::nca {
namespace {

constexpr std::uint32_t kMaxBuffers = 64;
constexpr std::uint32_t kMaxBufferPackets = 1U << 20;
constexpr std::uint64_t kMaxBufferBytes = 0xFFFFFFFFU;
constexpr std::uint32_t kMaxPacketBytes = 0xFFFF;
constexpr std::uint32_t kDefaultQueues = 3;
constexpr std::uint32_t kBuffersBesideQueues = 2;
constexpr std::uint32_t kDefaultBufferPackets = 16384;
constexpr std::uint32_t kDefaultPacketBytes = 2048;
constexpr std::uint64_t kDefaultBytesEach = 640;
constexpr std::uint64_t kPacketAlign = 16;
/// No struct of any version is larger: a size beyond it was not set.
constexpr std::size_t kMaxStructBytes = 4096;

/// Runs `body`; what it throws becomes a code, with its text in `error`.
template <typename Body>
nca_status guarded(LastError& error, Body const& body) {
  try {
    return body();
  } catch (std::bad_alloc const&) {
    return error.set(NCA_ERROR_MEMORY, "the host is out of memory");
  } catch (std::length_error const&) {
    return error.set(NCA_ERROR_MEMORY, "no memory is large enough");
  } catch (std::exception const& thrown) {
    return error.set(NCA_ERROR_INTERNAL, thrown.what());
  }
}

/// Reads a struct of the caller, of whatever version, as far as this one knows it. False where the caller sets what
/// this version does not know, or the size cannot be right.
template <typename T>
bool read_struct(const void* from, T& value) {
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size <= sizeof size || size > kMaxStructBytes) {
    return false;
  }
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](std::uint8_t byte) { return byte != 0; })) {
    return false;
  }
  std::memcpy(&value, from, std::min(size, sizeof(T)));
  return true;
}

/// Gives a struct out as far as the caller knows it; its size stays as it is.
template <typename T>
void write_struct(T const& value, void* to) {
  std::size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  const std::size_t known = std::min(size, sizeof(T));
  std::memcpy(static_cast<std::byte*>(to) + sizeof size, reinterpret_cast<const std::byte*>(&value) + sizeof size,
              known - sizeof size);
}
template <typename T>
bool has_size(T const* value) {
  return value->size > sizeof value->size && value->size <= kMaxStructBytes;
}
/// Results without their buffer could not be released again.
bool has_size(nca_results const* value) {
  return value->size >= offsetof(nca_results, packet_count) && value->size <= kMaxStructBytes;
}

template <typename T>
struct Wiped {
  T value{};
  Wiped() = default;
  Wiped(Wiped const&) = delete;
  Wiped& operator=(Wiped const&) = delete;
  ~Wiped() { wipe(&value, sizeof value); }
};

template <typename Config>
Result<std::unique_ptr<Function>> make(const void* config, Result<std::unique_ptr<Function>> (*maker)(Config const&)) {
  Wiped<Config> known;  // it may have keys
  if (!read_struct(config, known.value)) {
    return absl::InvalidArgumentError(
        "the configuration's size is not set, or it sets members unknown to this version of the library");
  }
  return maker(known.value);
}

Result<std::unique_ptr<Function>> make_function(int kind, const void* config) {
  switch (kind) {
    case NCA_MATCH:
      return make(config, &make_match);
    case NCA_CLASSIFY:
      return make(config, &make_classify);
    case NCA_ROUTE:
      return make(config, &make_route);
    case NCA_CIPHER:
      return make(config, &make_cipher);
    case NCA_KERNEL:
      return make(config, &make_custom);
    default:
      return absl::InvalidArgumentError(concat(kind, " is no kind of function"));
  }
}

struct Opened {
  std::unique_ptr<device::Device> device;  ///< null: the host
  std::string name;
};

/// `what`: "cpu", or as device::parse_preference() takes it.
Result<Opened> open_device(std::string_view what, std::string& tried) {
  if (what == "cpu") {
    return Opened{nullptr, "cpu"};
  }
  const Result<device::DevicePreference> preference = device::parse_preference(what);
  if (!preference.ok() || preference->kind == device::DevicePreference::Kind::kNone) {
    const std::string names = fmt::format("{}", fmt::join(device::backend_names(), ", "));
    const std::string numbered = fmt::format("{}:1", fmt::join(device::backend_names(), ":1, "));
    return absl::InvalidArgumentError(
        concat("'", what, "' is no device; write ", names, ", ", numbered, ", cpu or auto"));
  }
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device, device::open(*preference, &tried));
  if (!device) {
    return open_device("cpu", tried);
  }
  std::string name = concat(device->info().backend, ": ", device->info().name);
  return Opened{std::move(device), std::move(name)};
}

/// A library on the host says that this processor does not do.
bool lacks(Status const& status) { return status.code() == absl::StatusCode::kUnavailable; }

nca_status add_function(nca_context& context, int kind, const void* config, nca_function*& out) {
  const auto fail = [&](Status const& status, nca_status code) {
    return context.error.set(code, std::string(status.message()));
  };
  auto what = make_function(kind, config);
  if (!what.ok()) {
    return fail(what.status(), lacks(what.status()) ? NCA_ERROR_UNSUPPORTED : status_of(what.status()));
  }
  auto function = std::make_unique<nca_function>();
  function->context = &context;
  function->what = std::move(what).value();
  if (context.device != nullptr) {
    auto side = function->what->kernel_side();
    if (!side.ok()) {
      return fail(side.status(), status_of(side.status()));
    }
    function->returns_spill = side->returns_spill;
    function->has_keys = side->has_keys;
    auto device_nf = kernel::DeviceNf::create(*context.device, std::move(side->spec), side->plan, side->state);
    if (!device_nf.ok()) {
      const absl::StatusCode code = device_nf.status().code();
      const bool is_wrong = code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kNotFound;
      const nca_status wrong = kind == NCA_KERNEL ? NCA_ERROR_KERNEL : NCA_ERROR_INTERNAL;
      return fail(device_nf.status(), is_wrong ? wrong : status_of(device_nf.status()));
    }
    function->device_nf = std::move(device_nf).value();
    if (Status status = kernel::PackedLaunch::warm_up(*function->device_nf, kMaxBufferPackets); !status.ok()) {
      return fail(status, status_of(status));
    }
  } else if (const auto worker = function->what->host_worker(); !worker.ok()) {
    return fail(worker.status(), lacks(worker.status()) ? NCA_ERROR_UNSUPPORTED : status_of(worker.status()));
  }
  const std::lock_guard lock(context.mutex);
  context.functions.push_back(std::move(function));
  out = context.functions.back().get();
  return NCA_OK;
}

Result<StreamShape> shape_of(nca_stream_config const& config) {
  StreamShape shape{};
  const std::uint32_t default_queues = config.buffers == 0 ? kDefaultQueues : std::min(kDefaultQueues, config.buffers);
  shape.queues = config.queues == 0 ? default_queues : std::min(config.queues, kMaxBuffers + 1);
  shape.buffers = config.buffers == 0 ? shape.queues + kBuffersBesideQueues : config.buffers;
  shape.buffer_packets = config.buffer_packets == 0 ? kDefaultBufferPackets : config.buffer_packets;
  shape.packet_bytes = config.packet_bytes == 0 ? kDefaultPacketBytes : config.packet_bytes;
  shape.link = config.link;
  if (shape.queues > shape.buffers) {
    return absl::InvalidArgumentError(concat(config.queues, " queues for ", shape.buffers, " buffers"));
  }
  if (shape.buffers > kMaxBuffers || shape.buffer_packets > kMaxBufferPackets || shape.packet_bytes > kMaxPacketBytes) {
    return absl::InvalidArgumentError(
        concat(shape.buffers, " buffers of ", shape.buffer_packets, " packets of at most ", shape.packet_bytes,
               " bytes; a stream has at most ", kMaxBuffers, " of ", kMaxBufferPackets, " of ", kMaxPacketBytes));
  }
  const std::uint64_t least = (shape.packet_bytes + kPacketAlign - 1) / kPacketAlign * kPacketAlign;
  shape.buffer_bytes = config.buffer_bytes == 0 ? std::max(least, kDefaultBytesEach * shape.buffer_packets)
                                                : config.buffer_bytes / kPacketAlign * kPacketAlign;
  if (shape.buffer_bytes < least || shape.buffer_bytes > kMaxBufferBytes) {
    return absl::InvalidArgumentError(concat("buffers of ", config.buffer_bytes,
                                             " bytes; a stream of packets of up to ", shape.packet_bytes, " takes ",
                                             least, " to ", kMaxBufferBytes));
  }
  shape.times = config.flags == NCA_TIMES;
  if ((config.flags & ~std::uint64_t{NCA_TIMES}) != 0) {
    return absl::InvalidArgumentError(concat("flags ", config.flags, ": NCA_TIMES is the only one"));
  }
  if (shape.link != NCA_ETHERNET && shape.link != NCA_IPV4) {
    return absl::InvalidArgumentError(concat(shape.link, " is no link"));
  }
  return shape;
}

/// The functions of a stream; false unless all are of the context, each once. Reads none that is not.
bool take_functions(nca_context& context, nca_stream_config const& config, std::vector<nca_function*>& functions) {
  const std::lock_guard lock(context.mutex);
  if (config.function_count > context.functions.size()) {
    return false;
  }
  functions.assign(config.functions, config.functions + config.function_count);
  const std::set<nca_function const*> distinct(functions.begin(), functions.end());
  return distinct.size() == functions.size() &&
         std::all_of(functions.begin(), functions.end(), [&](nca_function const* function) {
           return std::any_of(context.functions.begin(), context.functions.end(),
                              [&](auto const& own) { return own.get() == function; });
         });
}

nca_status init_stream(nca_context& context, const void* raw, nca_stream*& out) {
  nca_stream_config config{};
  const bool is_known = read_struct(raw, config);
  if (!is_known || config.functions == nullptr || config.function_count == 0) {
    return context.error.set(NCA_ERROR_ARGUMENT, is_known ? "a stream needs at least one function"
                                                          : "the configuration's size is not set, or it sets members "
                                                            "unknown to this version of the library");
  }
  std::vector<nca_function*> functions;
  if (!take_functions(context, config, functions)) {
    return context.error.set(NCA_ERROR_ARGUMENT, "a function is null, removed, of another context, or given twice");
  }
  const auto shape = shape_of(config);
  if (!shape.ok()) {
    return context.error.set(NCA_ERROR_ARGUMENT, std::string(shape.status().message()));
  }
  auto stream = nca_stream::create(context, functions, *shape, config.notify, config.user);
  if (!stream.ok()) {
    const bool on_host = context.device == nullptr;
    return context.error.set(on_host && lacks(stream.status()) ? NCA_ERROR_UNSUPPORTED : status_of(stream.status()),
                             std::string(stream.status().message()));
  }
  const std::lock_guard lock(context.mutex);
  ++context.streams;
  for (nca_function* function : functions) {
    ++function->streams;
  }
  out = stream->release();
  return NCA_OK;
}

void destroy(nca_stream* stream) {
  nca_context& context = stream->context();
  const std::vector<nca_function*> functions(stream->functions().begin(), stream->functions().end());
  delete stream;
  const std::lock_guard lock(context.mutex);
  --context.streams;
  for (nca_function* function : functions) {
    --function->streams;
  }
}

nca_status refuse_own_thread(nca_stream& stream) {
  return stream.error().set(NCA_ERROR_CALLBACK, "the callback must not wait for its own thread");
}

}  // namespace
}  // namespace catena::nca

namespace nca = catena::nca;

extern "C" {

const char* nca_error_text(int status) {
  switch (status) {
    case NCA_OK:
      return "no error";
    case NCA_ERROR_ARGUMENT:
      return "an invalid argument or configuration";
    case NCA_ERROR_PACKET:
      return "a packet of no bytes, or of more than the stream takes";
    case NCA_ERROR_FULL:
      return "all buffers of the stream are in use";
    case NCA_ERROR_EMPTY:
      return "no results to read";
    case NCA_ERROR_BUSY:
      return "something still uses it";
    case NCA_ERROR_TIMEOUT:
      return "the time limit of the caller is over";
    case NCA_ERROR_CALLBACK:
      return "the call would wait for its own thread";
    case NCA_ERROR_FILE:
      return "the file cannot be read";
    case NCA_ERROR_NO_DEVICE:
      return "no such device here, or its driver is missing";
    case NCA_ERROR_DEVICE:
      return "the device failed, or is lost";
    case NCA_ERROR_KERNEL:
      return "the kernel source does not compile, or has no such kernel";
    case NCA_ERROR_UNSUPPORTED:
      return "this device cannot do it";
    case NCA_ERROR_MEMORY:
      return "out of memory, on the host or on the device";
    case NCA_ERROR_INTERNAL:
      return "a defect of the library or of a driver";
  }
  return "an unknown code";
}

const char* nca_version(void) { return CATENA_VERSION; }

nca_status nca_open(const char* device, char* text, size_t text_bytes, nca_context** context) {
  nca::copy_text("", text, text_bytes);
  if (context == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  *context = nullptr;
  if (device == nullptr) {
    nca::copy_text("a null device name", text, text_bytes);
    return NCA_ERROR_ARGUMENT;
  }
  nca::LastError error;
  const nca_status status = nca::guarded(error, [&] {
    std::string tried;
    auto opened = nca::open_device(device, tried);
    if (!opened.ok()) {
      const nca_status code = nca::status_of(opened.status());
      return error.set(code == NCA_ERROR_ARGUMENT || code == NCA_ERROR_MEMORY ? code : NCA_ERROR_NO_DEVICE,
                       std::string(opened.status().message()));
    }
    *context = nca::open_on(opened->device.get(), opened->name);
    (*context)->owned = std::move(opened->device);
    return error.set(NCA_OK, tried);
  });
  error.copy(text, text_bytes);
  return status;
}

nca_status nca_close(nca_context* context) {
  if (context == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(context->error, [&] {
    {
      const std::lock_guard lock(context->mutex);
      if (context->streams > 0) {
        return context->error.set(NCA_ERROR_BUSY, catena::concat(context->streams, " streams are not closed"));
      }
    }
    delete context;
    return NCA_OK;
  });
}

const char* nca_device_name(const nca_context* context) { return context == nullptr ? "" : context->name.c_str(); }

size_t nca_context_error(const nca_context* context, char* text, size_t text_bytes) {
  nca::copy_text("", text, text_bytes);
  return context == nullptr ? 0 : context->error.copy(text, text_bytes);
}

nca_status nca_add_network_function(nca_context* context, int kind, const void* config, nca_function** function) {
  if (function != nullptr) {
    *function = nullptr;
  }
  if (context == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  if (config == nullptr || function == nullptr) {
    return context->error.set(NCA_ERROR_ARGUMENT, "a null configuration, or nowhere to put the function");
  }
  return nca::guarded(context->error, [&] { return nca::add_function(*context, kind, config, *function); });
}

nca_status nca_remove_network_function(nca_function* function) {
  if (function == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  nca_context& context = *function->context;
  return nca::guarded(context.error, [&] {
    const std::lock_guard lock(context.mutex);
    if (function->streams > 0) {
      return context.error.set(NCA_ERROR_BUSY, catena::concat(function->streams, " streams have the function"));
    }
    context.functions.remove_if([&](auto const& each) { return each.get() == function; });
    return NCA_OK;
  });
}

nca_status nca_function_pattern(const nca_function* function, uint32_t number, nca_pattern_info* info) {
  if (function == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  nca::LastError& error = function->context->error;
  return nca::guarded(error, [&] {
    if (info == nullptr || !nca::has_size(info)) {
      return error.set(NCA_ERROR_ARGUMENT, "nowhere to put the pattern, or its size is not set");
    }
    const auto pattern = nca::pattern_of(*function->what, number);
    if (!pattern.ok()) {
      return error.set(NCA_ERROR_ARGUMENT, std::string(pattern.status().message()));
    }
    nca::write_struct(
        nca_pattern_info{0, pattern->bytes, pattern->length, pattern->nocase ? std::uint32_t{NCA_NOCASE} : 0}, info);
    return NCA_OK;
  });
}

size_t nca_function_refusals(const nca_function* function) {
  return function == nullptr ? 0 : nca::refusals_of(*function->what).size();
}

nca_status nca_function_refusal(const nca_function* function, uint32_t number, nca_refusal_info* info) {
  if (function == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  nca::LastError& error = function->context->error;
  return nca::guarded(error, [&] {
    if (info == nullptr || !nca::has_size(info)) {
      return error.set(NCA_ERROR_ARGUMENT, "nowhere to put the refused rule, or its size is not set");
    }
    const std::span<const catena::nf::Refusal> refusals = nca::refusals_of(*function->what);
    if (number >= refusals.size()) {
      return error.set(NCA_ERROR_ARGUMENT, catena::concat("refused rule ", number, " of ", refusals.size()));
    }
    catena::nf::Refusal const& refusal = refusals[number];
    nca::write_struct(nca_refusal_info{0, refusal.reason.c_str(), refusal.line, refusal.column, refusal.file.c_str()},
                      info);
    return NCA_OK;
  });
}

nca_status nca_traffic_stream_init(nca_context* context, const nca_stream_config* config, nca_stream** stream) {
  if (stream != nullptr) {
    *stream = nullptr;
  }
  if (context == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  if (config == nullptr || stream == nullptr) {
    return context->error.set(NCA_ERROR_ARGUMENT, "a null configuration, or nowhere to put the stream");
  }
  return nca::guarded(context->error, [&] { return nca::init_stream(*context, config, *stream); });
}

nca_status nca_add_packets(nca_stream* stream, const nca_packet* packets, size_t count, size_t* accepted) {
  size_t unasked = 0;
  size_t& done = accepted != nullptr ? *accepted : unasked;
  done = 0;
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    if (packets == nullptr && count > 0) {
      return stream->error().set(NCA_ERROR_ARGUMENT, "null packets");
    }
    return stream->add({packets, count}, done);
  });
}

nca_status nca_buffer_ready(nca_stream* stream) {
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    stream->buffer_ready();
    return NCA_OK;
  });
}

nca_status nca_flush(nca_stream* stream, int64_t timeout_ns) {
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    if (stream->on_own_thread()) {
      return nca::refuse_own_thread(*stream);
    }
    return stream->flush(timeout_ns < 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(timeout_ns)));
  });
}

int nca_stream_fd(const nca_stream* stream) { return stream == nullptr ? -1 : stream->descriptor(); }

nca_status nca_read_results(nca_stream* stream, nca_results* results) {
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    if (results == nullptr || !nca::has_size(results)) {
      return stream->error().set(NCA_ERROR_ARGUMENT, "nowhere to put results, or their size is not set");
    }
    nca_results all{};
    const nca_status status = stream->read(all);
    if (status == NCA_OK) {
      nca::write_struct(all, results);
    }
    return status;
  });
}

nca_status nca_release_results(nca_stream* stream, const nca_results* results) {
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    if (results == nullptr || !nca::has_size(results)) {
      return stream->error().set(NCA_ERROR_ARGUMENT, "null results, or their size is not set");
    }
    return stream->release(*results);
  });
}

nca_status nca_stream_statistics(nca_stream* stream, nca_statistics* statistics) {
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    if (statistics == nullptr || !nca::has_size(statistics)) {
      return stream->error().set(NCA_ERROR_ARGUMENT, "nowhere to put statistics, or their size is not set");
    }
    nca::write_struct(stream->statistics(), statistics);
    return NCA_OK;
  });
}

size_t nca_stream_error(const nca_stream* stream, char* text, size_t text_bytes) {
  nca::copy_text("", text, text_bytes);
  return stream == nullptr ? 0 : stream->error().copy(text, text_bytes);
}

nca_status nca_stream_close(nca_stream* stream) {
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    if (stream->on_own_thread()) {
      return nca::refuse_own_thread(*stream);
    }
    if (!stream->is_idle()) {
      return stream->error().set(NCA_ERROR_BUSY, "packets were accepted whose results are not released");
    }
    nca::destroy(stream);
    return NCA_OK;
  });
}

nca_status nca_stream_abort(nca_stream* stream, uint64_t* discarded) {
  if (discarded != nullptr) {
    *discarded = 0;
  }
  if (stream == nullptr) {
    return NCA_ERROR_ARGUMENT;
  }
  return nca::guarded(stream->error(), [&] {
    if (stream->on_own_thread()) {
      return nca::refuse_own_thread(*stream);
    }
    if (discarded != nullptr) {
      *discarded = stream->unread_packets();
    }
    nca::destroy(stream);
    return NCA_OK;
  });
}

}  // extern "C"
