// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

/// The NF's descriptor, type `ttl_guard`.
catena::nf::Descriptor const& catena_nf_ttl_guard();
