/* SPDX-License-Identifier: Apache-2.0 */
/* What lwIP asks of compiler and platform: GCC and clang on Linux. */
#ifndef CATENA_STACK_TCP_ARCH_CC_H
#define CATENA_STACK_TCP_ARCH_CC_H

#include <endian.h>
#include <stdint.h>

#define LWIP_TIMEVAL_PRIVATE 0

#ifdef __cplusplus
extern "C" {
#endif
uint32_t catena_stack_random(void);
/* Ends the process: an assertion of lwIP does not hold. */
void catena_stack_assertion_failed(const char* what, const char* file, int line) __attribute__((noreturn));
#ifdef __cplusplus
}
#endif
#define LWIP_RAND() catena_stack_random()
#define LWIP_PLATFORM_ASSERT(what) catena_stack_assertion_failed(what, __FILE__, __LINE__)
#define LWIP_PLATFORM_DIAG(what)

#endif
