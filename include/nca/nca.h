/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCA_NCA_H
#define NCA_NCA_H

#include <stddef.h>
#include <stdint.h>

/*
 * NFV Compute Acceleration: an application with its own packet loop hands packets to network functions and reads their
 * results. The calls are those of draft-perumal-nfvrg-nfv-compute-acceleration-00, plus the additional calls of a
 * library.
 *
 *     nca_open("auto", text, sizeof text, &context);
 *     nca_add_network_function(context, NCA_MATCH, &match, &function);
 *     nca_traffic_stream_init(context, &config, &stream);
 *     loop:  nca_add_packets(stream, packets, count, &accepted);    copies; hands full buffers over automatically
 *            nca_buffer_ready(stream);                              hands a partial buffer over
 *            notify callback, or the descriptor of nca_stream_fd()  "results can be read"
 *            nca_read_results(stream, &results); ...; nca_release_results(stream, &results);
 *     nca_stream_close(stream); nca_close(context);
 *
 * A stream has several buffers. One is being filled. The others wait for a command queue, are on the device, on their
 * way back, or hold unreleased results. Packets of any length are packed into a buffer one after another, so it crosses
 * the bus in one copy, once for all functions of the stream. If no buffer is free, nca_add_packets() accepts fewer
 * packets and returns NCA_ERROR_FULL: the queue is bounded, and an accepted packet is never lost.
 *
 * Thread rule: every function may be called from any thread, also concurrently on one handle, except during or after
 * the closing of that handle. The library has no global state. Each stream has its own thread, which drives the device
 * and calls the callback.
 *
 * Ownership: arguments stay the caller's and may change after the call returns, except `user` of a stream. Returned
 * objects belong to the library, and each function states their lifetime.
 *
 * Results do not depend on the device: "cuda", "opencl" and "cpu" give the same bytes.
 *
 * If the host is out of memory, any call may return NCA_ERROR_MEMORY. It then has no effect, except for packets counted
 * as accepted by nca_add_packets(). No C++ exception leaves the library, and a callback must not throw one.
 *
 * Every extensible struct begins with its own size, set by the caller:
 * `nca_stream_config config = NCA_INIT(nca_stream_config);`. Members equal to 0 or NULL have the documented default. A
 * struct of another version works for the members known to both versions: NCA_ERROR_ARGUMENT if the caller sets a
 * member unknown to this version. No struct exceeds 4096 bytes.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct nca_context nca_context;   /* an opened device */
typedef struct nca_function nca_function; /* a configured network function */
typedef struct nca_stream nca_stream;     /* a flow of packets through functions */

/* Return codes. The text of a handle's last failure has details: nca_context_error(), nca_stream_error(). */
typedef enum nca_status {
  NCA_OK = 0,
  NCA_ERROR_ARGUMENT = -1,     /* a null pointer, an out-of-range value, or an invalid configuration file */
  NCA_ERROR_PACKET = -2,       /* a packet without bytes, or longer than the stream accepts */
  NCA_ERROR_FULL = -3,         /* all buffers of the stream are in use */
  NCA_ERROR_EMPTY = -4,        /* no results to read */
  NCA_ERROR_BUSY = -5,         /* the object is still in use */
  NCA_ERROR_TIMEOUT = -6,      /* the caller's time limit has expired */
  NCA_ERROR_CALLBACK = -7,     /* the call would wait for its own thread */
  NCA_ERROR_FILE = -8,         /* a file cannot be read */
  NCA_ERROR_NO_DEVICE = -9,    /* the device does not exist, or its driver is missing */
  NCA_ERROR_DEVICE = -10,      /* the device failed, or was lost */
  NCA_ERROR_KERNEL = -11,      /* kernel source does not compile, or does not define the kernel */
  NCA_ERROR_UNSUPPORTED = -12, /* not supported by this device */
  NCA_ERROR_MEMORY = -13,      /* out of memory, on the host or on the device */
  NCA_ERROR_INTERNAL = -14     /* a defect of the library or of a driver */
} nca_status;

/* Text for a code, in English. Never NULL; a constant. Unknown codes have a text too. */
const char* nca_error_text(int status);

/* Version of the running library, e.g. "0.1.0"; a constant. The number after libnca.so is the interface version. */
const char* nca_version(void);

/* --- devices ---------------------------------------------------------------------------------------------------- */

/*
 * Opens a device. `device`: "cuda", "opencl", each also with a number after it ("cuda:1"), "cpu", or "auto": the first
 * available one of cuda, opencl, cpu, not counting CPUs that pose as OpenCL devices. Slow: loads drivers. `text`: NULL,
 * or a buffer of `text_bytes` bytes for the reason of a failure, and with "auto" for the unusable devices with the
 * reasons; "" otherwise. Truncated if necessary, always terminated by a 0. On failure *context is NULL.
 *   NCA_ERROR_ARGUMENT   a null `device` or `context`, or an unknown name
 *   NCA_ERROR_NO_DEVICE  the device is not available
 *   NCA_ERROR_MEMORY     out of memory
 */
nca_status nca_open(const char* device, char* text, size_t text_bytes, nca_context** context);

/*
 * Closes a device with its functions.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_BUSY      it has streams; nothing was closed
 */
nca_status nca_close(nca_context* context);

/* Name of the device, e.g. "cuda: NVIDIA H200" or "cpu"; "" for a null handle. Lives as long as the context. */
const char* nca_device_name(const nca_context* context);

/*
 * The text of the last failed call on `context`, or "". Written to `text` as by nca_open(). Returns the length of the
 * whole text without the 0; 0 without a failure or for a null handle.
 */
size_t nca_context_error(const nca_context* context, char* text, size_t text_bytes);

/* --- network functions ------------------------------------------------------------------------------------------ */

/* Kinds of functions, with their configuration structs. */
typedef enum nca_kind {
  NCA_MATCH = 1,    /* multi-string match: nca_match_config */
  NCA_CLASSIFY = 2, /* first matching rule for the headers: nca_classify_config */
  NCA_ROUTE = 3,    /* longest prefix of the IPv4 destination: nca_route_config */
  NCA_CIPHER = 4,   /* AES-128-CTR and HMAC-SHA1-96: nca_cipher_config */
  NCA_KERNEL = 5    /* the caller's own kernel: nca_kernel_config */
} nca_kind;

/* Maximum bytes of a pattern, and maximum patterns of a function. */
enum { NCA_MAX_PATTERN_BYTES = 2048, NCA_MAX_PATTERNS = 65535 };

enum { NCA_NOCASE = 1 }; /* ASCII letters of the pattern match both cases */

typedef struct nca_pattern {
  const void* bytes;
  uint32_t length; /* 1 .. NCA_MAX_PATTERN_BYTES */
  uint32_t flags;  /* NCA_NOCASE or 0 */
} nca_pattern;

/*
 * Searches all bytes of a packet for strings. Exactly one of the three sources is set.
 *   patterns      a pattern's number is its position
 *   strings_file  one string per line, byte by byte, without its line feed; a string's number is its line, from 0
 *   rules_file    the contents of Snort or Suricata rules, without negated ones, each distinct one once. A content's
 *                 number is its position among them, in file order. Position constraints of rules are ignored. A rule
 *                 with an unsupported option is refused: none of its contents is searched for, and
 *                 nca_function_refusal() names it.
 * Results are all occurrences of all patterns, including overlapping ones, as listed by Hyperscan with its default
 * flags, without duplicates: (packet, pattern, end), where end is the number of bytes up to the end of the occurrence.
 */
typedef struct nca_match_config {
  size_t size;
  const nca_pattern* patterns;
  size_t pattern_count;
  const char* strings_file;
  const char* rules_file;
  uint32_t flags; /* NCA_NOCASE: for all lines of strings_file */
} nca_match_config;

/*
 * A packet matches if each field does. A packet without ports (neither TCP nor UDP, a later fragment) matches only if
 * both ranges are 0 .. 65535. No rule matches a fragment that hides or overwrites a transport header (RFC 1858, RFC
 * 3128), nor TCP or UDP with an unreadable header.
 */
typedef struct nca_rule {
  uint32_t source; /* IPv4, host order; bits after source_length are 0 */
  uint32_t destination;
  uint8_t source_length; /* 0 .. 32 */
  uint8_t destination_length;
  uint8_t protocol;           /* only bits set in protocol_mask */
  uint8_t protocol_mask;      /* compared bits of the protocol: 0 any protocol, 255 exactly one */
  uint16_t source_port_first; /* .. source_port_last, both included */
  uint16_t source_port_last;
  uint16_t destination_port_first;
  uint16_t destination_port_last;
} nca_rule;

/*
 * Finds for each IPv4 packet the first matching rule. Either `rules`, numbered by position, or `rules_file`:
 * `allow|deny protocol source destination ports` or ClassBench lines, numbered by rule, not by line. At most 10,000
 * rules.
 */
typedef struct nca_classify_config {
  size_t size;
  const nca_rule* rules;
  size_t rule_count;
  const char* rules_file;
} nca_classify_config;

typedef struct nca_prefix {
  uint32_t address;  /* IPv4, host order; bits after `length` are 0 */
  uint16_t next_hop; /* 0 .. 65533 */
  uint8_t length;    /* 0 .. 32 */
  uint8_t reserved;  /* 0 */
} nca_prefix;

/* Finds for each IPv4 packet the longest prefix of its destination. Either `prefixes`, each once and at most
 * 33,554,432, or `routes_file`: one `prefix next-hop` per line. A device supports prefixes longer than /24 in at most
 * 1,048,576 networks of 256 addresses. */
typedef struct nca_route_config {
  size_t size;
  const nca_prefix* prefixes;
  size_t prefix_count;
  const char* routes_file;
} nca_route_config;

typedef enum nca_direction { NCA_ENCRYPT = 1, NCA_DECRYPT = 2 } nca_direction;

/*
 * AES-128 in counter mode as in RFC 3686, and HMAC-SHA1 truncated to 96 bits (RFC 2404) over the header and the
 * ciphertext. A packet consists of `text_offset` unchanged bytes, the text, and for decryption the 12 bytes of the ICV.
 * The IV of a packet is the 8 bytes at `iv_offset`. Packets encrypted with the same key and nonce must have different
 * IVs. ESP has text_offset 16 and iv_offset 8.
 */
typedef struct nca_cipher_config {
  size_t size;
  uint32_t direction;   /* nca_direction */
  uint32_t text_offset; /* at least iv_offset + 8, at most 256 */
  uint32_t iv_offset;
  uint8_t key[16];
  uint8_t nonce[4];
  uint8_t authentication_key[20];
} nca_cipher_config;

/*
 * A kernel of the caller, in Catena's device dialect (docs/writing-an-nf.md): `source` includes
 * <catena/kernel/context.hpp> and defines CATENA_KERNEL(name). It accesses packets by ctx.packet().payload(), which is
 * the whole packet and must not be written, and returns its result by set_result() or result_array().
 */
typedef struct nca_kernel_config {
  size_t size;
  const char* source;
  const char* name;
  const void* state; /* contents of ctx.state() and ctx.array(); copied. NULL if state_bytes is 0 */
  size_t state_bytes;
  uint32_t result_bytes; /* a multiple of 4, 4 .. 256 */
  uint32_t lanes;        /* work-items per packet; 0: 1 */
  uint32_t group_size;   /* work-items per group, a multiple of lanes; 0: 64 */
  uint32_t local_bytes;  /* local memory of a group */
} nca_kernel_config;

/*
 * Adds a function. `kind`: an nca_kind. `config`: the struct of that kind. Slow: builds tables, may compile a kernel.
 * The function belongs to the context and lives until it is removed or the context is closed. On failure *function is
 * NULL.
 *
 *   NCA_ERROR_ARGUMENT     a null pointer, an unknown kind, or an invalid configuration; the text for an invalid file
 *                          begins with file:line:column. Also a rules_file without any content to search for: the text
 *                          counts the refused rules by reason, with the position of the first
 *   NCA_ERROR_FILE         a file cannot be read
 *   NCA_ERROR_MEMORY       out of memory on the host or the device, or the table of the patterns or prefixes is too
 *                          large for the device
 *   NCA_ERROR_KERNEL       NCA_KERNEL: the source does not compile, or defines no kernel of this name
 *   NCA_ERROR_UNSUPPORTED  NCA_KERNEL on "cpu", or the processor lacks a feature needed by a library
 *   NCA_ERROR_DEVICE       the device failed
 */
nca_status nca_add_network_function(nca_context* context, int kind, const void* config, nca_function** function);

/*
 * Removes a function from its context.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_BUSY      a stream uses it; nothing was removed
 */
nca_status nca_remove_network_function(nca_function* function);

/* Result of nca_function_pattern(). */
typedef struct nca_pattern_info {
  size_t size;
  const void* bytes; /* in lower case with NCA_NOCASE */
  uint32_t length;
  uint32_t flags;
} nca_pattern_info;

/*
 * Pattern number `number` of an NCA_MATCH function. Its bytes live as long as the function.
 *   NCA_ERROR_ARGUMENT  a null pointer, a function of another kind, or a number without a pattern
 */
nca_status nca_function_pattern(const nca_function* function, uint32_t number, nca_pattern_info* info);

/* Result of nca_function_refusal(). */
typedef struct nca_refusal_info {
  size_t size;
  const char* reason; /* the unsupported option, e.g. "pcre"; equal texts for equal reasons */
  uint32_t line;      /* of rules_file, from 1 */
  uint32_t column;    /* from 1, in bytes */
  const char* file;   /* rules_file, as given */
} nca_refusal_info;

/*
 * Number of refused rules in a function's files. Only the rules_file of an NCA_MATCH function can have refused rules.
 * Returns 0 for all other functions, for which unsupported contents are an error of the whole file, and for a null
 * handle.
 */
size_t nca_function_refusals(const nca_function* function);

/*
 * Refused rule number `number`, from 0 to nca_function_refusals() - 1, in file order. The texts live as long as the
 * function.
 *   NCA_ERROR_ARGUMENT  a null pointer, a function of another kind, or a number without a refused rule
 */
nca_status nca_function_refusal(const nca_function* function, uint32_t number, nca_refusal_info* info);

/* --- streams ---------------------------------------------------------------------------------------------------- */

/* Type of a packet's first header. For NCA_CLASSIFY and NCA_ROUTE; the other functions inspect only bytes. */
typedef enum nca_link {
  NCA_ETHERNET = 0, /* an Ethernet frame, with up to two VLAN tags */
  NCA_IPV4 = 1      /* an IPv4 header */
} nca_link;

/*
 * Results of a buffer can be read. Called by the stream's thread, once per buffer, in submission order. It may call any
 * function on the stream except functions that return NCA_ERROR_CALLBACK. Not called after nca_stream_close() or
 * nca_stream_abort() has returned.
 */
typedef void (*nca_notify_callback)(nca_stream* stream, void* user);

enum { NCA_TIMES = 1 }; /* results include timestamps of the device's work on their buffer, at a small cost */

typedef struct nca_stream_config {
  size_t size;
  nca_function* const* functions; /* in the order of the results; each once */
  size_t function_count;          /* at least 1 */
  uint32_t queues;                /* buffers on the device at the same time, each with a command queue; 0: 3, or
                                     `buffers` if that is less; at most `buffers` */
  uint32_t buffers;               /* 0: 2 more than `queues`, one to fill and one to read; at most 64 */
  uint32_t buffer_packets;        /* packets per buffer; 0: 16384; at most 1048576 */
  uint64_t buffer_bytes;          /* bytes per buffer, each packet rounded up to 16; 0: 640 per packet; below 4 GiB and
                                     at least the bytes of one packet */
  uint32_t packet_bytes;          /* maximum bytes per packet; 0: 2048; at most 65535 */
  uint32_t link;                  /* nca_link */
  nca_notify_callback notify;     /* NULL: no callback */
  void* user;                     /* for notify */
  uint64_t flags;                 /* NCA_TIMES or 0 */
} nca_stream_config;

/*
 * Creates a stream through functions of `context`. Allocates all its device memory: for each buffer its bytes, and for
 * each function 4 (NCA_MATCH; 8 with patterns of both cases) or 1 (NCA_CIPHER) times as many. On failure *stream is
 * NULL.
 *   NCA_ERROR_ARGUMENT     a null pointer, a function of another context, a removed or repeated function, or an
 *                          out-of-range value
 *   NCA_ERROR_MEMORY       out of memory on the host or the device, out of descriptors or threads
 *   NCA_ERROR_UNSUPPORTED  the processor lacks a feature needed by a library
 *   NCA_ERROR_DEVICE       the device failed
 */
nca_status nca_traffic_stream_init(nca_context* context, const nca_stream_config* config, nca_stream** stream);

typedef struct nca_packet {
  const void* data;
  uint64_t tag;      /* the caller's; returned with the results */
  uint32_t length;   /* bytes, 1 .. packet_bytes */
  uint32_t reserved; /* 0 */
} nca_packet;

/*
 * Copies packets into the stream's buffers, in order. *accepted (may be NULL) is the number of accepted packets, always
 * the first ones. Never waits. A full buffer is submitted automatically. If several threads add packets concurrently,
 * packets of one call keep their order.
 *   NCA_ERROR_ARGUMENT  a null pointer; NULL packets are allowed if count is 0
 *   NCA_ERROR_PACKET    packets[*accepted] has no bytes, no data, or is too long; earlier packets were accepted
 *   NCA_ERROR_FULL      no space for packets[*accepted] until results are read and released
 *   NCA_ERROR_DEVICE    the device is lost: the stream accepts no more packets. Accepted packets come back with the
 *                       results of their buffer, without results of functions
 */
nca_status nca_add_packets(nca_stream* stream, const nca_packet* packets, size_t count, size_t* accepted);

/*
 * Hands the buffer being filled over, without waiting. No effect if it holds no packet.
 *   NCA_ERROR_ARGUMENT  a null handle
 */
nca_status nca_buffer_ready(nca_stream* stream);

/*
 * Hands the buffer being filled over, and waits until the results of all packets accepted earlier can be read.
 * `timeout_ns`: longest wait in nanoseconds; below 0: unlimited.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_TIMEOUT   not within that time; nothing is lost, and it may be called again
 *   NCA_ERROR_CALLBACK  called by the callback
 */
nca_status nca_flush(nca_stream* stream, int64_t timeout_ns);

/* A descriptor that is readable while results can be read; only for poll() and similar calls. Owned and closed by the
 * stream. -1 for a null handle. */
int nca_stream_fd(const nca_stream* stream);

/* --- results ---------------------------------------------------------------------------------------------------- */

/* `packet` is the position in its buffer: results.tags[packet] is its tag. Lists are sorted by their members in order,
 * without duplicates. */
typedef struct nca_match {
  uint32_t packet;
  uint32_t end; /* bytes of the packet up to the end of the occurrence */
  uint32_t pattern;
} nca_match;

typedef struct nca_rule_hit {
  uint32_t packet;
  uint32_t rule;
} nca_rule_hit;

typedef struct nca_next_hop {
  uint32_t packet;
  uint32_t next_hop;
} nca_next_hop;

typedef enum nca_cipher_state {
  NCA_CIPHER_DONE = 0,
  NCA_CIPHER_BAD_ICV = 1,      /* decryption: the ICV is wrong; no bytes are returned */
  NCA_CIPHER_TOO_SHORT = 2,    /* the packet ends before its text begins, or within its ICV; no bytes are returned */
  NCA_CIPHER_OUT_OF_BOUNDS = 3 /* a kernel accessed memory out of bounds for the packet; no bytes are returned */
} nca_cipher_state;

typedef struct nca_cipher_packet {
  const uint8_t* bytes; /* encryption: header, ciphertext, ICV; decryption: header, text. NULL if empty */
  uint32_t length;
  nca_cipher_state state;
} nca_cipher_packet;

/* Results of one function for a buffer. The list of its kind is set, the others are NULL. */
typedef struct nca_function_results {
  size_t size;
  nca_kind kind;
  uint32_t out_of_bounds;            /* packets with an out-of-bounds access by a kernel. Their results are omitted;
                                        for NCA_KERNEL they are 0, NCA_CIPHER has a state for them */
  size_t count;                      /* elements of the list */
  const nca_match* matches;          /* NCA_MATCH */
  const nca_rule_hit* rules;         /* NCA_CLASSIFY: packets with a matching rule */
  const nca_next_hop* next_hops;     /* NCA_ROUTE: packets with a matching prefix */
  const nca_cipher_packet* ciphered; /* NCA_CIPHER: one per packet */
  const uint8_t* bytes;              /* NCA_KERNEL: result_bytes per packet */
} nca_function_results;

/* Times of the device's steps on a buffer, in ns of CLOCK_MONOTONIC. The device's clock is calibrated against the
 * host's at stream creation. Times of one stream are comparable to about a microsecond, times of stream and host to a
 * few. On "cpu" no copies exist: begin equals moved_in, and computed equals moved_back. Only the copies needed by every
 * buffer are included; results of packets with more than a few matches are fetched after moved_back. */
typedef struct nca_times {
  int64_t begin_ns;      /* the copy to the device was next */
  int64_t moved_in_ns;   /* the buffer was on the device */
  int64_t computed_ns;   /* all functions had finished */
  int64_t moved_back_ns; /* the results were on the host */
} nca_times;

typedef struct nca_results {
  size_t size;
  uint64_t buffer;           /* number of the buffer in submission order, from 0 */
  uint32_t packet_count;     /* at least 1 */
  nca_status status;         /* NCA_OK; else packets without results of functions: NCA_ERROR_DEVICE if the device was
                                lost before completion, NCA_ERROR_MEMORY if the host has no memory for the results */
  const uint64_t* tags;      /* [packet_count] */
  const nca_packet* packets; /* [packet_count] as accepted; `data` is the library's copy */
  size_t function_count;     /* as in the stream's config; 0 if status is not NCA_OK */
  const nca_function_results* const* functions;
  nca_times times; /* 0 without NCA_TIMES, and if status is not NCA_OK */
} nca_results;

/*
 * Returns the results of the oldest complete buffer not read yet: buffers come in submission order. Never waits. The
 * memory referenced by *results is valid until nca_release_results(). Until then the buffer cannot accept packets:
 * without releases, nca_add_packets() finally returns NCA_ERROR_FULL.
 *
 *   NCA_ERROR_ARGUMENT  a null pointer, or results->size is not set, or does not include `buffer`
 *   NCA_ERROR_EMPTY     no results to read
 */
nca_status nca_read_results(nca_stream* stream, nca_results* results);

/*
 * Returns the buffer of `results` to the stream.
 *   NCA_ERROR_ARGUMENT  a null pointer, a size as for nca_read_results(), or results not read, or already released
 */
nca_status nca_release_results(nca_stream* stream, const nca_results* results);

typedef struct nca_statistics {
  size_t size;
  uint64_t packets_accepted;
  uint64_t bytes_accepted;    /* of these packets */
  uint64_t packets_full;      /* packets not accepted by an nca_add_packets() for lack of space */
  uint64_t packets_refused;   /* packets not accepted because of NCA_ERROR_PACKET */
  uint64_t packets_completed; /* packets with available results, read or not */
  uint64_t buffers_handed_over;
  uint64_t buffers_completed;
  uint64_t bytes_to_device; /* over the bus; 0 on "cpu" */
  uint64_t bytes_to_host;
} nca_statistics;

/*
 * Counters since the creation of the stream.
 *   NCA_ERROR_ARGUMENT  a null pointer, or statistics->size is not set
 */
nca_status nca_stream_statistics(nca_stream* stream, nca_statistics* statistics);

/* As nca_context_error(), for a stream. NCA_ERROR_FULL and NCA_ERROR_EMPTY are not failures and keep the text. */
size_t nca_stream_error(const nca_stream* stream, char* text, size_t text_bytes);

/*
 * Closes a stream without pending packets or results.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_BUSY      accepted packets have unreleased results; nothing was closed. Call nca_flush(), read and
 *                       release, or discard them with nca_stream_abort()
 *   NCA_ERROR_CALLBACK  called by the callback; nothing was closed
 */
nca_status nca_stream_close(nca_stream* stream);

/*
 * Closes a stream in any state, after the device has finished the work in flight. *discarded (may be NULL): accepted
 * packets with unread results.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_CALLBACK  called by the callback; nothing was closed
 */
nca_status nca_stream_abort(nca_stream* stream, uint64_t* discarded);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/*
 * Initializer of a struct that begins with its size: sets the size, all other members are 0 or NULL. For declarations:
 * `nca_results results = NCA_INIT(nca_results);`. Compiles without a warning in C99 and in C++.
 */
#ifdef __cplusplus
template <typename Struct>
struct nca_initializer {
  static Struct value() {
    Struct made = Struct();
    made.size = sizeof(Struct);
    return made;
  }
};
// NOLINTNEXTLINE(readability-identifier-naming): the prefix is that of the API
#define NCA_INIT(type) nca_initializer<type>::value()
#else
#define NCA_INIT(type) \
  { .size = sizeof(type) }
#endif

#endif
