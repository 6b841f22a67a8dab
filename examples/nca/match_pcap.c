/* SPDX-License-Identifier: Apache-2.0
 * Looks for strings in the packets of a capture.
 *
 *     match_pcap STRINGS CAPTURE [DEVICE]
 *
 * STRINGS has a string a line. DEVICE: auto (the default), cuda, opencl or cpu. Prints a line for each match: the packet
 * and the line of the string, both from 0, and where in the packet the match ends.
 */
#define _DEFAULT_SOURCE /* u_char, which pcap.h wants */
#include <nca/nca.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "match_pcap: %s: %s\n", what, why);
  exit(1);
}

/* Ends the program unless `status` is NCA_OK. */
static void check(nca_status status, const nca_stream *stream) {
  char text[1024] = "";
  if (status != NCA_OK) {
    nca_stream_error(stream, text, sizeof text);
    fail(nca_error_text(status), text);
  }
}

/* Prints the matches of all buffers that are complete. */
static void print_results(nca_stream *stream) {
  nca_results results = NCA_INIT(nca_results);
  nca_status status;
  while ((status = nca_read_results(stream, &results)) == NCA_OK) {
    size_t i;
    check(results.status, stream);
    for (i = 0; i < results.functions[0]->count; ++i) {
      const nca_match *match = &results.functions[0]->matches[i];
      printf("%llu\t%u\t%u\n", (unsigned long long)results.tags[match->packet], match->pattern, match->end);
    }
    check(nca_release_results(stream, &results), stream);
  }
  if (status != NCA_ERROR_EMPTY) {
    check(status, stream);
  }
}

int main(int argc, char **argv) {
  const char *device = argc == 4 ? argv[3] : "auto";
  char text[PCAP_ERRBUF_SIZE > 4096 ? PCAP_ERRBUF_SIZE : 4096];
  nca_context *context;
  nca_function *function;
  nca_stream *stream;
  nca_match_config match = NCA_INIT(nca_match_config);
  nca_stream_config config = NCA_INIT(nca_stream_config);
  pcap_t *capture;
  struct pcap_pkthdr *header;
  const u_char *bytes;
  uint64_t number = 0;

  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: match_pcap STRINGS CAPTURE [DEVICE]\n");
    return 2;
  }
  if ((capture = pcap_open_offline(argv[2], text)) == NULL) {
    fail(argv[2], text);
  }
  if (nca_open(device, text, sizeof text, &context) != NCA_OK) {
    fail(device, text);
  }
  fprintf(stderr, "device: %s\n", nca_device_name(context));

  match.strings_file = argv[1];
  if (nca_add_network_function(context, NCA_MATCH, &match, &function) != NCA_OK) {
    nca_context_error(context, text, sizeof text);
    fail(argv[1], text);
  }
  config.functions = &function;
  config.function_count = 1;
  config.packet_bytes = 65535;
  if (nca_traffic_stream_init(context, &config, &stream) != NCA_OK) {
    nca_context_error(context, text, sizeof text);
    fail("stream", text);
  }

  while (pcap_next_ex(capture, &header, &bytes) == 1) {
    nca_packet packet = {bytes, 0, 0, 0};
    nca_status status;
    packet.tag = number++;
    packet.length = header->caplen;
    if (packet.length == 0) {
      continue;
    }
    while ((status = nca_add_packets(stream, &packet, 1, NULL)) == NCA_ERROR_FULL) {
      struct pollfd ready = {0, POLLIN, 0};
      ready.fd = nca_stream_fd(stream);
      poll(&ready, 1, -1);
      print_results(stream);
    }
    check(status, stream);
  }
  check(nca_flush(stream, -1), stream);
  print_results(stream);

  check(nca_stream_close(stream), stream);
  nca_close(context);
  pcap_close(capture);
  return 0;
}
