// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace catena::runtime {

/// Three digits with a suitable SI prefix: scaled(0.0000036, "s") is "3.60 us", scaled(197132, "pps") "197 kpps",
/// scaled(0, "bps") "0 bps". From n (nano) to T; `value` is not negative.
std::string scaled(double value, std::string_view unit);

}  // namespace catena::runtime
