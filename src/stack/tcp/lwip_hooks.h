/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of tcp.cpp that lwIP calls at its extension points. */
#ifndef CATENA_STACK_TCP_LWIP_HOOKS_H
#define CATENA_STACK_TCP_LWIP_HOOKS_H

#include "lwip/err.h"
#include "lwip/ip6_addr.h"
#include "lwip/ip_addr.h"

struct tcp_pcb;
struct tcp_hdr;
struct pbuf;
struct netif;

#ifdef __cplusplus
extern "C" {
#endif
/* The initial sequence number of a connection (RFC 6528). */
u32_t catena_stack_isn(const ip_addr_t* local, u16_t local_port, const ip_addr_t* remote, u16_t remote_port);
/* A segment of a connection has arrived; the header's numbers are in host order. `data`: its
   data. ERR_OK: lwIP goes on with it; else it is dropped. */
err_t catena_stack_segment(struct tcp_pcb* pcb, struct tcp_hdr* header, u16_t option_bytes, u16_t first_bytes,
                           u8_t* second, struct pbuf* data);
/* The router for other networks of IPv6; null: that of router advertisements. */
const ip6_addr_t* catena_stack_gateway(struct netif* interface);
#ifdef __cplusplus
}
#endif
#define LWIP_HOOK_ND6_GET_GW(interface, destination) catena_stack_gateway(interface)
#define LWIP_HOOK_TCP_ISN(local, local_port, remote, remote_port) \
  catena_stack_isn(local, local_port, remote, remote_port)
#define LWIP_HOOK_TCP_INPACKET_PCB(pcb, header, option_bytes, first_bytes, second, data) \
  catena_stack_segment(pcb, header, option_bytes, first_bytes, second, data)

#endif
