// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The backends in the order in which `auto` tries them. A new backend is a folder beside this file, with functions
/// probe_NAME(), open_NAME() and needs_NAME() as in Backend, and a row here.
#define CATENA_BACKENDS(row) row(cuda) row(opencl)
