/* SPDX-License-Identifier: Apache-2.0 */
/* Options of lwIP for stack::Tcp: TCP over IPv4 and IPv6 by the raw API, one thread. */
#ifndef CATENA_STACK_TCP_LWIPOPTS_H
#define CATENA_STACK_TCP_LWIPOPTS_H

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0

/* Protocols */
#define LWIP_IPV4 1
#define LWIP_IPV6 1
#define LWIP_ARP 1
#define LWIP_ETHERNET 1
#define LWIP_ICMP 1
#define LWIP_TCP 1
#define LWIP_UDP 0
#define LWIP_RAW 0
#define LWIP_DNS 0
#define LWIP_DHCP 0
#define LWIP_AUTOIP 0
#define LWIP_IGMP 0
#define IP_FORWARD 0
#define IP_FRAG 0
#define IP_REASSEMBLY 0
#define LWIP_IPV6_FRAG 0
#define LWIP_IPV6_REASS 0
#define LWIP_IPV6_MLD 0
#define LWIP_IPV6_AUTOCONFIG 0
#define LWIP_IPV6_SEND_ROUTER_SOLICIT 0

/* Memory: from libc, by memory.hpp, which limits it. lwIP's own pools have 16-bit counts. */
#define MEM_LIBC_MALLOC 1
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT 8
#define PBUF_POOL_BUFSIZE 2048

/* TCP. Windows of 1 MiB fill 10 Gbps at a round trip of 0.8 ms. */
#define TCP_MSS 1460
#define TCP_WND (1024 * 1024)
#define LWIP_WND_SCALE 1
#define TCP_RCV_SCALE 5
#define TCP_SND_BUF (1024 * 1024)
#define TCP_SND_QUEUELEN 8192
#define TCP_SNDLOWAT 32768
#define TCP_SNDQUEUELOWAT (TCP_SND_QUEUELEN / 2)
#define TCP_OVERSIZE 0 /* data is referenced, never appended to */
#define TCP_QUEUE_OOSEQ 1
#define TCP_OOSEQ_MAX_BYTES (TCP_WND)
#define TCP_OOSEQ_MAX_PBUFS 1024
#define LWIP_TCP_SACK_OUT 1
#define LWIP_TCP_MAX_SACK_NUM 4
#define LWIP_TCP_TIMESTAMPS 0
#define TCP_LISTEN_BACKLOG 0        /* lwIP refuses a SYN above it; Tcp drops the oldest half-open connection */
#define TCP_TMR_INTERVAL 10         /* ms; the default of 250 makes each retransmission wait half a second */
#define LWIP_TCP_PCB_NUM_EXT_ARGS 2 /* SACK recovery, PcbRecord */

/* Neighbours on the link: a request from one more pushes the oldest out. nd6 counts by 8 bits with sign. */
#define ARP_TABLE_SIZE 512
#define LWIP_ND6_NUM_NEIGHBORS 127
#define LWIP_ND6_NUM_DESTINATIONS 127

/* A frame may be headers with references to data behind them. */
#define LWIP_NETIF_TX_SINGLE_PBUF 0
#define LWIP_NETIF_HWADDRHINT 0
#define ETH_PAD_SIZE 0

/* The port computes and verifies the checksums of TCP: the CPU need not read the data. */
#define CHECKSUM_GEN_TCP 0
#define CHECKSUM_CHECK_TCP 0

#define LWIP_STATS 0
#define LWIP_PROVIDE_ERRNO 0

/* Tcp calls the timers. */
#define LWIP_TIMERS 0

#define LWIP_HOOK_FILENAME "lwip_hooks.h"

#endif
