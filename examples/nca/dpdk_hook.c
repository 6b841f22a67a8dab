/* SPDX-License-Identifier: Apache-2.0
 * A DPDK application that lets libnca look at each burst before it sends it on: packets in which a string occurs are
 * dropped.
 *
 *     dpdk_hook EAL-ARGUMENTS -- STRINGS [DEVICE]
 *     dpdk_hook --no-huge -m 256 --vdev=net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap -- strings.txt cpu
 *
 * Ends when the first port has been silent for a second.
 */
#include <inttypes.h>
#include <nca/nca.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 0, BURST = 32, BUFFERS = 3, BUFFER_PACKETS = 512, RING = 512, POOL = 8191, PATIENCE_MS = 100 };

static uint64_t received, matched, unread, unsent, sent;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "dpdk_hook: %s: %s\n", what, why);
  exit(1);
}

static void start_port(struct rte_mempool *pool) {
  struct rte_eth_conf none;
  memset(&none, 0, sizeof none);
  if (rte_eth_dev_count_avail() == 0 || rte_eth_dev_configure(PORT, 1, 1, &none) != 0 ||
      rte_eth_rx_queue_setup(PORT, 0, RING, SOCKET_ID_ANY, NULL, pool) != 0 ||
      rte_eth_tx_queue_setup(PORT, 0, RING, SOCKET_ID_ANY, NULL) != 0 || rte_eth_dev_start(PORT) != 0) {
    fail("port 0", "does not start; name it, e.g. with --vdev");
  }
}

/* Sends a packet on. A port that takes nothing for PATIENCE_MS loses it: waiting for ever would lose all that follow. */
static void send_on(struct rte_mbuf *packet) {
  const uint64_t since = rte_get_timer_cycles();
  while (rte_eth_tx_burst(PORT, 0, &packet, 1) == 0) {
    if (rte_get_timer_cycles() - since > rte_get_timer_hz() * PATIENCE_MS / 1000) {
      rte_pktmbuf_free(packet);
      ++unsent;
      return;
    }
  }
  ++sent;
}

/* Sends packets without a match on, frees the others. A packet's tag is its mbuf, which waited here. */
static void finish_buffers(nca_stream *stream) {
  nca_results results = NCA_INIT(nca_results);
  while (nca_read_results(stream, &results) == NCA_OK) {
    const nca_function_results *found = results.function_count > 0 ? results.functions[0] : NULL;
    size_t next = 0;
    uint32_t i;
    for (i = 0; i < results.packet_count; ++i) {
      struct rte_mbuf *packet = (struct rte_mbuf *)(uintptr_t)results.tags[i];
      int has_match = 0;
      while (found != NULL && next < found->count && found->matches[next].packet == i) {
        has_match = 1;
        ++next;
      }
      if (found == NULL) { /* the device is lost: nobody looked at the packet */
        rte_pktmbuf_free(packet);
        ++unread;
      } else if (has_match) {
        rte_pktmbuf_free(packet);
        ++matched;
      } else {
        send_on(packet);
      }
    }
    nca_release_results(stream, &results);
  }
}

/* Adds a burst to the stream. If the stream is full, reads the results of earlier packets first. */
static void add_burst(nca_stream *stream, struct rte_mbuf **burst, uint16_t count) {
  nca_packet packets[BURST];
  size_t wanted = 0;
  size_t done = 0;
  uint16_t i;
  for (i = 0; i < count; ++i) {
    if (rte_pktmbuf_linearize(burst[i]) != 0) { /* segments that do not fit one buffer */
      rte_pktmbuf_free(burst[i]);
      ++unread;
      continue;
    }
    packets[wanted].data = rte_pktmbuf_mtod(burst[i], const void *);
    packets[wanted].length = rte_pktmbuf_data_len(burst[i]);
    packets[wanted].tag = (uint64_t)(uintptr_t)burst[i];
    packets[wanted].reserved = 0;
    ++wanted;
  }
  while (done < wanted) {
    size_t accepted;
    nca_status status = nca_add_packets(stream, packets + done, wanted - done, &accepted);
    done += accepted;
    if (status == NCA_ERROR_FULL) {
      finish_buffers(stream);
    } else if (status == NCA_ERROR_PACKET) { /* no bytes, or more than the stream takes: nobody can look at it */
      rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)packets[done++].tag);
      ++unread;
    } else if (status != NCA_OK) {
      fail("nca_add_packets", nca_error_text(status));
    }
  }
}

int main(int argc, char **argv) {
  char text[1024];
  nca_context *context;
  nca_function *function;
  nca_stream *stream;
  nca_match_config match = NCA_INIT(nca_match_config);
  nca_stream_config config = NCA_INIT(nca_stream_config);
  struct rte_mempool *pool;
  uint64_t silent_since;
  const int eal_arguments = rte_eal_init(argc, argv);
  if (eal_arguments < 0) {
    fail("EAL", "does not start");
  }
  argc -= eal_arguments;
  argv += eal_arguments;
  if (argc < 2) {
    fail("usage", "dpdk_hook EAL-ARGUMENTS -- STRINGS [DEVICE]");
  }
  pool = rte_pktmbuf_pool_create("packets", POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (pool == NULL) {
    fail("mempool", "no memory; give the EAL more with -m");
  }
  start_port(pool);

  if (nca_open(argc > 2 ? argv[2] : "auto", text, sizeof text, &context) != NCA_OK) {
    fail("nca_open", text);
  }
  match.strings_file = argv[1];
  config.functions = &function;
  config.function_count = 1;
  config.buffers = BUFFERS;
  config.buffer_packets = BUFFER_PACKETS;
  if (nca_add_network_function(context, NCA_MATCH, &match, &function) != NCA_OK ||
      nca_traffic_stream_init(context, &config, &stream) != NCA_OK) {
    nca_context_error(context, text, sizeof text);
    fail("libnca", text);
  }

  silent_since = rte_get_timer_cycles();
  while (rte_get_timer_cycles() - silent_since < rte_get_timer_hz()) {
    struct rte_mbuf *burst[BURST];
    const uint16_t count = rte_eth_rx_burst(PORT, 0, burst, BURST);
    if (count > 0) {
      received += count;
      add_burst(stream, burst, count);
      silent_since = rte_get_timer_cycles();
    } else {
      nca_buffer_ready(stream); /* nothing to wait for: better a small buffer now than a full one later */
    }
    finish_buffers(stream);
  }
  nca_flush(stream, -1);
  finish_buffers(stream);
  nca_stream_close(stream);
  nca_close(context);
  rte_eth_dev_stop(PORT);
  rte_eth_dev_close(PORT);
  rte_eal_cleanup();
  printf("%" PRIu64 " received, %" PRIu64 " matched, %" PRIu64 " not looked at, %" PRIu64 " not sent, %" PRIu64 " sent\n",
         received, matched, unread, unsent, sent);
  return 0;
}
