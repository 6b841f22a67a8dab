// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

/// The NF's descriptor, type `remark`.
catena::nf::Descriptor const& catena_nf_remark();
