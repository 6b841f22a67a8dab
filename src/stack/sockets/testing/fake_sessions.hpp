// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sessions API without a stack: the kernel's TCP on the loopback interface serves the ports. For tests of the
/// library in one process, sanitizers included. Buffers are small: they wrap and fill.
namespace catena::sockets {

/// As if the stack's process died; attachments get -ESTALE.
void kill_fake_stack();
/// It has no space for another process.
void fill_fake_stack();
/// A stack serves its path again, with space.
void start_fake_stack();
/// Bytes of each buffer of a session.
constexpr int kFakeBufferBytes = 16 * 1024;

}  // namespace catena::sockets
