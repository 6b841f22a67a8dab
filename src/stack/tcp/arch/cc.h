/* SPDX-License-Identifier: Apache-2.0 */
/* What lwIP asks of compiler and platform: GCC and clang on Linux. */
#ifndef CATENA_STACK_TCP_ARCH_CC_H
#define CATENA_STACK_TCP_ARCH_CC_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>

#define LWIP_TIMEVAL_PRIVATE 0

#ifdef __cplusplus
extern "C" {
#endif
uint32_t catena_stack_random(void);
/* Ends the process: an assertion of lwIP does not hold. */
void catena_stack_assertion_failed(const char* what, const char* file, int line) __attribute__((noreturn));
/* Memory of lwIP (memory.hpp); null: above the limit. */
void* catena_stack_allocate(size_t bytes);
void* catena_stack_allocate_zeros(size_t count, size_t bytes);
void catena_stack_free(void* block);
#ifdef __cplusplus
}
#endif
#define mem_clib_malloc catena_stack_allocate
#define mem_clib_calloc catena_stack_allocate_zeros
#define mem_clib_free catena_stack_free
#define LWIP_RAND() catena_stack_random()
#define LWIP_PLATFORM_ASSERT(what) catena_stack_assertion_failed(what, __FILE__, __LINE__)
#define LWIP_PLATFORM_DIAG(what)

#endif
