/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCA_NCA_H
#define NCA_NCA_H

#include <stddef.h>
#include <stdint.h>

/*
 * NFV Compute Acceleration: an application that owns its packet loop hands packets over, and reads what network
 * functions found in them. The calls are those of draft-perumal-nfvrg-nfv-compute-acceleration-00; what a library
 * needs beside them is added.
 *
 *     nca_open("auto", text, sizeof text, &context);
 *     nca_add_network_function(context, NCA_MATCH, &match, &function);
 *     nca_traffic_stream_init(context, &config, &stream);
 *     loop:  nca_add_packets(stream, packets, count, &accepted);    copies; a full buffer is handed over by itself
 *            nca_buffer_ready(stream);                              hands over what a buffer holds so far
 *            notify callback, or the descriptor of nca_stream_fd()  "results can be read"
 *            nca_read_results(stream, &results); ...; nca_release_results(stream, &results);
 *     nca_stream_close(stream); nca_close(context);
 *
 * A stream has some buffers. One is being filled; the others wait for a command queue, are on the device, on their
 * way back, or hold results that were not released yet. Packets of any length are packed into a buffer one after
 * another, so it crosses the bus in one copy, once for all functions of the stream. When no buffer is free,
 * nca_add_packets() accepts less and says NCA_ERROR_FULL: what waits is bounded, and a packet that was accepted is
 * never lost.
 *
 * Thread rule: every function may be called from any thread, and from several at once on one handle, as long as nobody
 * uses a handle while, or after, it is closed. There is no global state. A stream has a thread of its own, which works
 * with the device and calls the callback.
 *
 * Ownership: what a caller passes stays the caller's and may be changed as soon as the call returns; but for `user` of
 * a stream. What a call gives out belongs to the library, and each function says how long it stays.
 *
 * Results do not depend on the device: "cuda", "opencl" and "cpu" give the same bytes.
 *
 * Where the host has no memory any call may return NCA_ERROR_MEMORY: what it was to do is not done, but for packets
 * that nca_add_packets() counts as accepted. No C++ exception leaves the library, and none may leave a callback.
 *
 * Every struct that may grow begins with its own size, which the caller sets:
 * `nca_stream_config config = NCA_INIT(nca_stream_config);`. Members that are 0 or NULL have the default that is named
 * with them. A struct of another version works as far as both know it: NCA_ERROR_ARGUMENT where the caller sets a
 * member that this version does not know. None has more than 4096 bytes.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct nca_context nca_context;   /* an opened device */
typedef struct nca_function nca_function; /* a configured network function */
typedef struct nca_stream nca_stream;     /* packets on their way through functions */

/* What calls return. The text of the last failure on a handle tells more: nca_context_error(), nca_stream_error(). */
typedef enum nca_status {
  NCA_OK = 0,
  NCA_ERROR_ARGUMENT = -1,     /* a null pointer, a value out of its range, or a configuration file that is wrong */
  NCA_ERROR_PACKET = -2,       /* a packet of no bytes, or of more than the stream takes */
  NCA_ERROR_FULL = -3,         /* all buffers of the stream are in use */
  NCA_ERROR_EMPTY = -4,        /* there are no results to read */
  NCA_ERROR_BUSY = -5,         /* something still uses it */
  NCA_ERROR_TIMEOUT = -6,      /* the time that the caller gave is over */
  NCA_ERROR_CALLBACK = -7,     /* the call would wait for the thread that it is made on */
  NCA_ERROR_FILE = -8,         /* a file that cannot be read */
  NCA_ERROR_NO_DEVICE = -9,    /* no such device here, or its driver is missing */
  NCA_ERROR_DEVICE = -10,      /* the device failed, or is lost */
  NCA_ERROR_KERNEL = -11,      /* kernel source that does not compile, or has no such kernel */
  NCA_ERROR_UNSUPPORTED = -12, /* this device cannot do it */
  NCA_ERROR_MEMORY = -13,      /* out of memory, on the host or on the device */
  NCA_ERROR_INTERNAL = -14     /* a defect of the library or of a driver */
} nca_status;

/* What a code means, in English. Never NULL; a constant. Unknown codes have a text too. */
const char* nca_error_text(int status);

/* Version of the library that runs, e.g. "0.1.0"; a constant. The number after libnca.so is that of the interface. */
const char* nca_version(void);

/* --- devices ---------------------------------------------------------------------------------------------------- */

/*
 * Opens a device. `device`: "cuda", "opencl", each also with a number after it ("cuda:1"), "cpu", or "auto": the first
 * of cuda, opencl, cpu that is there, where a CPU that poses as an OpenCL device does not count. Slow: loads drivers.
 * `text`: NULL, or room for `text_bytes` bytes that take the reason of a failure, and with "auto" what was tried before
 * and why it did not serve; "" otherwise. Cut to the room, always with a 0 after. On failure *context is NULL.
 *   NCA_ERROR_ARGUMENT   a null `device` or `context`, or a name that is none of these
 *   NCA_ERROR_NO_DEVICE  not here
 *   NCA_ERROR_MEMORY     out of memory
 */
nca_status nca_open(const char* device, char* text, size_t text_bytes, nca_context** context);

/*
 * Closes a device, with the functions that were added to it.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_BUSY      it has streams; nothing was closed
 */
nca_status nca_close(nca_context* context);

/* Name of the device, e.g. "cuda: NVIDIA H200" or "cpu"; "" for a null handle. Lives as long as the context. */
const char* nca_device_name(const nca_context* context);

/*
 * The text of the last call on `context` that failed, or "". Written to `text` as nca_open() does; returns the bytes
 * that it has without the 0, so 0 if there is none or the handle is null.
 */
size_t nca_context_error(const nca_context* context, char* text, size_t text_bytes);

/* --- network functions ------------------------------------------------------------------------------------------ */

/* What a function does, and the struct that configures it. */
typedef enum nca_kind {
  NCA_MATCH = 1,    /* multi-string match: nca_match_config */
  NCA_CLASSIFY = 2, /* first rule that matches the headers: nca_classify_config */
  NCA_ROUTE = 3,    /* longest prefix of the IPv4 destination: nca_route_config */
  NCA_CIPHER = 4,   /* AES-128-CTR and HMAC-SHA1-96: nca_cipher_config */
  NCA_KERNEL = 5    /* the caller's own kernel: nca_kernel_config */
} nca_kind;

/* Most bytes of a pattern, and most patterns of a function. */
enum { NCA_MAX_PATTERN_BYTES = 2048, NCA_MAX_PATTERNS = 65535 };

enum { NCA_NOCASE = 1 }; /* ASCII letters of the pattern stand for both cases */

typedef struct nca_pattern {
  const void* bytes;
  uint32_t length; /* 1 .. NCA_MAX_PATTERN_BYTES */
  uint32_t flags;  /* NCA_NOCASE or 0 */
} nca_pattern;

/*
 * Looks for strings in all bytes of a packet. One of the three sources is given.
 *   patterns      a pattern's number is its position
 *   strings_file  a string a line, byte by byte, without its line feed; a string's number is its line, from 0
 *   rules_file    the contents of Snort or Suricata rules (negated ones left out), each distinct one once; a content's
 *                 number is its position among them, in the order of the file. Where a rule asks for it to lie is not
 *                 inspected. A rule that says what the library does not know is refused: nothing of it is searched for,
 *                 and nca_function_refusal() names it.
 * Found is every occurrence of every pattern, overlapping ones too, as Hyperscan lists them with its default flags and
 * duplicates removed: (packet, pattern, end), where end is the number of bytes up to the end of the occurrence.
 */
typedef struct nca_match_config {
  size_t size;
  const nca_pattern* patterns;
  size_t pattern_count;
  const char* strings_file;
  const char* rules_file;
  uint32_t flags; /* NCA_NOCASE: for every line of strings_file */
} nca_match_config;

/*
 * A packet matches if each field does; one without ports (neither TCP nor UDP, a later fragment) only if both ranges
 * are 0 .. 65535. No rule matches a fragment that hides or overwrites a transport header (RFC 1858, RFC 3128), nor TCP
 * or UDP whose header cannot be read.
 */
typedef struct nca_rule {
  uint32_t source; /* IPv4, host order; bits after source_length are 0 */
  uint32_t destination;
  uint8_t source_length; /* 0 .. 32 */
  uint8_t destination_length;
  uint8_t protocol;           /* no bit set that is not in protocol_mask */
  uint8_t protocol_mask;      /* bits of the protocol that count: 0 any, 255 this one */
  uint16_t source_port_first; /* .. source_port_last, both included */
  uint16_t source_port_last;
  uint16_t destination_port_first;
  uint16_t destination_port_last;
} nca_rule;

/*
 * Finds for each IPv4 packet the first rule that matches. Either `rules`, of which a rule's number is its position, or
 * `rules_file`: `allow|deny protocol source destination ports` or ClassBench lines, whose numbers count the rules of
 * the file, not its lines. At most 10,000 rules.
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
 * 33,554,432, or `routes_file`: `prefix next-hop` a line. A device takes prefixes longer than /24 in at most 1,048,576
 * networks of 256 addresses. */
typedef struct nca_route_config {
  size_t size;
  const nca_prefix* prefixes;
  size_t prefix_count;
  const char* routes_file;
} nca_route_config;

typedef enum nca_direction { NCA_ENCRYPT = 1, NCA_DECRYPT = 2 } nca_direction;

/*
 * AES-128 in counter mode as RFC 3686 uses it, and HMAC-SHA1 cut to 96 bits (RFC 2404) over the header and what is
 * encrypted. A packet is `text_offset` bytes that stay as they are, the text, and for decryption the 12 bytes of the
 * ICV. The IV of a packet is the 8 bytes at `iv_offset`; no two packets that are encrypted with one key and nonce may
 * have the same. ESP has text_offset 16 and iv_offset 8.
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
 * <catena/kernel/context.hpp> and defines CATENA_KERNEL(name). It sees packets by ctx.packet().payload(), which is the
 * whole packet and must not be written, and gives its result by set_result() or result_array().
 */
typedef struct nca_kernel_config {
  size_t size;
  const char* source;
  const char* name;
  const void* state; /* what ctx.state() and ctx.array() see; copied. NULL if state_bytes is 0 */
  size_t state_bytes;
  uint32_t result_bytes; /* a multiple of 4, 4 .. 256 */
  uint32_t lanes;        /* work-items per packet; 0: 1 */
  uint32_t group_size;   /* work-items a group, a multiple of lanes; 0: 64 */
  uint32_t local_bytes;  /* local memory of a group */
} nca_kernel_config;

/*
 * Adds a function. `kind`: an nca_kind. `config`: the struct that goes with it. Slow: builds tables, may compile a
 * kernel. The function belongs to the context and lives until it is removed or the context is closed. On failure
 * *function is NULL.
 *
 *   NCA_ERROR_ARGUMENT     a null pointer, a kind that is none, or a configuration that makes no sense; the text of a
 *                          wrong file begins with file:line:column. Also a rules_file of which nothing is left to
 *                          search for: the text counts the refused rules by reason, and names the place of the first
 *   NCA_ERROR_FILE         a file cannot be read
 *   NCA_ERROR_MEMORY       out of memory on the host or the device, or patterns or prefixes whose table would be too
 *                          large for the device
 *   NCA_ERROR_KERNEL       NCA_KERNEL: the source does not compile, or defines no kernel of this name
 *   NCA_ERROR_UNSUPPORTED  NCA_KERNEL on "cpu", or a processor that lacks what a library needs
 *   NCA_ERROR_DEVICE       the device failed
 */
nca_status nca_add_network_function(nca_context* context, int kind, const void* config, nca_function** function);

/*
 * Removes a function from its context.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_BUSY      a stream has it; nothing was removed
 */
nca_status nca_remove_network_function(nca_function* function);

/* What nca_function_pattern() tells. */
typedef struct nca_pattern_info {
  size_t size;
  const void* bytes; /* in lower case with NCA_NOCASE */
  uint32_t length;
  uint32_t flags;
} nca_pattern_info;

/*
 * Pattern number `number` of an NCA_MATCH function. Its bytes live as long as the function.
 *   NCA_ERROR_ARGUMENT  a null pointer, a function of another kind, or a number that no pattern has
 */
nca_status nca_function_pattern(const nca_function* function, uint32_t number, nca_pattern_info* info);

/* What nca_function_refusal() tells. */
typedef struct nca_refusal_info {
  size_t size;
  const char* reason; /* what the library does not know, e.g. "pcre"; the same words for the same reason */
  uint32_t line;      /* of rules_file, from 1 */
  uint32_t column;    /* from 1, in bytes */
  const char* file;   /* rules_file, as it was given */
} nca_refusal_info;

/*
 * How many rules of a function's files were refused. Only the rules_file of an NCA_MATCH function can have any: 0 for
 * every other function, where what the library does not know is an error of the whole file, and for a null handle.
 */
size_t nca_function_refusals(const nca_function* function);

/*
 * Refused rule number `number`, from 0 to nca_function_refusals() - 1, in the order of the file. The texts live as long
 * as the function.
 *   NCA_ERROR_ARGUMENT  a null pointer, a function of another kind, or a number that no refused rule has
 */
nca_status nca_function_refusal(const nca_function* function, uint32_t number, nca_refusal_info* info);

/* --- streams ---------------------------------------------------------------------------------------------------- */

/* What the first byte of a packet is. For NCA_CLASSIFY and NCA_ROUTE; the other functions inspect bytes alone. */
typedef enum nca_link {
  NCA_ETHERNET = 0, /* an Ethernet frame, with up to two VLAN tags */
  NCA_IPV4 = 1      /* an IPv4 header */
} nca_link;

/*
 * Results of a buffer can be read. Called by the stream's thread, once for each buffer, in the order of handing over.
 * It may call any function on the stream but those that return NCA_ERROR_CALLBACK. Not called any more once
 * nca_stream_close() or nca_stream_abort() has returned.
 */
typedef void (*nca_notify_callback)(nca_stream* stream, void* user);

enum { NCA_TIMES = 1 }; /* results tell when the device worked on their buffer, which costs it a little */

typedef struct nca_stream_config {
  size_t size;
  nca_function* const* functions; /* in the order of the results; each once */
  size_t function_count;          /* at least 1 */
  uint32_t queues;                /* buffers that the device has at once, each with a command queue; 0: 3, or `buffers`
                                     if that is less; at most `buffers` */
  uint32_t buffers;               /* 0: 2 more than `queues`, one to fill and one to read; at most 64 */
  uint32_t buffer_packets;        /* packets of a buffer; 0: 16384; at most 1048576 */
  uint64_t buffer_bytes;      /* bytes of a buffer, each packet rounded up to 16; 0: 640 a packet; below 4 GiB and at
                                 least as much as one packet takes */
  uint32_t packet_bytes;      /* most bytes of a packet; 0: 2048; at most 65535 */
  uint32_t link;              /* nca_link */
  nca_notify_callback notify; /* NULL: none */
  void* user;                 /* for notify */
  uint64_t flags;             /* NCA_TIMES or 0 */
} nca_stream_config;

/*
 * Makes a stream through functions of `context`. Takes all memory that the stream will need on the device: for each
 * buffer its bytes, and 4 (NCA_MATCH; 8 with patterns of both cases) or 1 (NCA_CIPHER) times as many for each function.
 * On failure *stream is NULL.
 *   NCA_ERROR_ARGUMENT     a null pointer, a function of another context, one that was removed or is given twice, or a
 *                          value out of its range
 *   NCA_ERROR_MEMORY       out of memory on the host or the device, out of descriptors or threads
 *   NCA_ERROR_UNSUPPORTED  a processor that lacks what a library needs
 *   NCA_ERROR_DEVICE       the device failed
 */
nca_status nca_traffic_stream_init(nca_context* context, const nca_stream_config* config, nca_stream** stream);

typedef struct nca_packet {
  const void* data;
  uint64_t tag;      /* of the caller; comes back with the results */
  uint32_t length;   /* bytes, 1 .. packet_bytes */
  uint32_t reserved; /* 0 */
} nca_packet;

/*
 * Copies packets into the stream's buffers, in order. *accepted (may be NULL) is how many, always the first ones. Never
 * waits. A buffer that is full is handed over by itself. Of packets that several threads add at once, those of one call
 * keep their order among each other.
 *   NCA_ERROR_ARGUMENT  a null pointer; NULL packets are all right if count is 0
 *   NCA_ERROR_PACKET    packets[*accepted] has no bytes, no data, or is too long; those before it were accepted
 *   NCA_ERROR_FULL      packets[*accepted] has no room before results are read and released
 *   NCA_ERROR_DEVICE    the device is lost: the stream accepts nothing any more. What was accepted comes back with the
 *                       results of its buffer, without results of functions
 */
nca_status nca_add_packets(nca_stream* stream, const nca_packet* packets, size_t count, size_t* accepted);

/*
 * Hands the buffer that is being filled over, without waiting. Nothing happens if it holds no packet.
 *   NCA_ERROR_ARGUMENT  a null handle
 */
nca_status nca_buffer_ready(nca_stream* stream);

/*
 * Hands over what there is, and waits until the results of all that was accepted before can be read.
 * `timeout_ns`: longest wait in nanoseconds; below 0: without end.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_TIMEOUT   not within that time; nothing is lost, and it may be called again
 *   NCA_ERROR_CALLBACK  called by the callback
 */
nca_status nca_flush(nca_stream* stream, int64_t timeout_ns);

/* A descriptor that poll() finds readable as long as there are results to read; only for poll() and its like. Belongs
 * to the stream, which closes it. -1 for a null handle. */
int nca_stream_fd(const nca_stream* stream);

/* --- results ---------------------------------------------------------------------------------------------------- */

/* `packet` is the position in its buffer: results.tags[packet] is its tag. Lists are sorted by their members in order,
 * and have no duplicates. */
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
  NCA_CIPHER_BAD_ICV = 1,      /* decryption: the ICV is wrong; no bytes are given out */
  NCA_CIPHER_TOO_SHORT = 2,    /* the packet ends before its text begins, or within its ICV; no bytes are given out */
  NCA_CIPHER_OUT_OF_BOUNDS = 3 /* a kernel read or wrote out of bounds over the packet; no bytes are given out */
} nca_cipher_state;

typedef struct nca_cipher_packet {
  const uint8_t* bytes; /* encryption: header, ciphertext, ICV; decryption: header, text. NULL if there are none */
  uint32_t length;
  nca_cipher_state state;
} nca_cipher_packet;

/* What one function found in a buffer. The list of its kind is set, the others are NULL. */
typedef struct nca_function_results {
  size_t size;
  nca_kind kind;
  uint32_t out_of_bounds;            /* packets over which a kernel read or wrote out of bounds; their results are left
                                        out; for NCA_KERNEL they are 0, NCA_CIPHER has a state for them */
  size_t count;                      /* elements of the list */
  const nca_match* matches;          /* NCA_MATCH */
  const nca_rule_hit* rules;         /* NCA_CLASSIFY: packets that a rule matches */
  const nca_next_hop* next_hops;     /* NCA_ROUTE: packets that a prefix matches */
  const nca_cipher_packet* ciphered; /* NCA_CIPHER: one for each packet */
  const uint8_t* bytes;              /* NCA_KERNEL: result_bytes for each packet */
} nca_function_results;

/* When the device came to the parts of the work on a buffer, in ns of CLOCK_MONOTONIC. The device's clock is set beside
 * the host's when the stream is made: a stream's times compare with each other to about a microsecond, with the host's
 * to a few. On "cpu", where nothing is copied, begin is moved_in and computed is moved_back. Of copies those are in it
 * that every buffer needs; results of packets with more than a few matches are fetched after moved_back. */
typedef struct nca_times {
  int64_t begin_ns;      /* the copy to the device was next */
  int64_t moved_in_ns;   /* the buffer was on the device */
  int64_t computed_ns;   /* all functions were done */
  int64_t moved_back_ns; /* the results were on the host */
} nca_times;

typedef struct nca_results {
  size_t size;
  uint64_t buffer;       /* number of the buffer in the order of handing over, from 0 */
  uint32_t packet_count; /* at least 1 */
  nca_status status;     /* NCA_OK; else there are packets but no results of functions: NCA_ERROR_DEVICE if the device
                            was lost before they were complete, NCA_ERROR_MEMORY if the host has no room for them */
  const uint64_t* tags;  /* [packet_count] */
  const nca_packet* packets; /* [packet_count] as they were accepted; `data` is the library's copy */
  size_t function_count;     /* as in the stream's config; 0 if status is not NCA_OK */
  const nca_function_results* const* functions;
  nca_times times; /* 0 without NCA_TIMES, and if status is not NCA_OK */
} nca_results;

/*
 * Gives out the results of the oldest buffer that is complete and was not read yet: buffers come in the order of
 * handing over. Never waits. What *results points to lives until nca_release_results(). Until then the buffer cannot
 * take packets: a caller who does not release comes to NCA_ERROR_FULL.
 *
 *   NCA_ERROR_ARGUMENT  a null pointer, or results->size is not set, or does not hold `buffer`
 *   NCA_ERROR_EMPTY     there are none
 */
nca_status nca_read_results(nca_stream* stream, nca_results* results);

/*
 * Gives the buffer of `results` back to the stream.
 *   NCA_ERROR_ARGUMENT  a null pointer, a size as for nca_read_results(), or results that are not read, or released
 *                       already
 */
nca_status nca_release_results(nca_stream* stream, const nca_results* results);

typedef struct nca_statistics {
  size_t size;
  uint64_t packets_accepted;
  uint64_t bytes_accepted;    /* of these packets */
  uint64_t packets_full;      /* packets that an nca_add_packets() did not accept because there was no room */
  uint64_t packets_refused;   /* the same because of themselves: NCA_ERROR_PACKET */
  uint64_t packets_completed; /* whose results could be read */
  uint64_t buffers_handed_over;
  uint64_t buffers_completed;
  uint64_t bytes_to_device; /* over the bus; 0 on "cpu" */
  uint64_t bytes_to_host;
} nca_statistics;

/*
 * Counts since the stream was made.
 *   NCA_ERROR_ARGUMENT  a null pointer, or statistics->size is not set
 */
nca_status nca_stream_statistics(nca_stream* stream, nca_statistics* statistics);

/* As nca_context_error(), for a stream. NCA_ERROR_FULL and NCA_ERROR_EMPTY, which are no failures, leave the text. */
size_t nca_stream_error(const nca_stream* stream, char* text, size_t text_bytes);

/*
 * Closes a stream that has nothing left to give out.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_BUSY      packets were accepted whose results are not released yet; nothing was closed. nca_flush(), read
 *                       and release, or throw them away with nca_stream_abort()
 *   NCA_ERROR_CALLBACK  called by the callback; nothing was closed
 */
nca_status nca_stream_close(nca_stream* stream);

/*
 * Closes a stream whatever it holds, after the device is done with what is in flight. *discarded (may be NULL): packets
 * that were accepted, but whose results were not read.
 *   NCA_ERROR_ARGUMENT  a null handle
 *   NCA_ERROR_CALLBACK  called by the callback; nothing was closed
 */
nca_status nca_stream_abort(nca_stream* stream, uint64_t* discarded);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/*
 * The first value of a struct that begins with its size: the size is set, all other members are 0 or NULL. For
 * declarations: `nca_results results = NCA_INIT(nca_results);`. Without a warning in C99 and in C++.
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
