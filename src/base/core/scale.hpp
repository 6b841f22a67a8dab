// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace catena {

/// A time with three digits and a suitable SI prefix, from n (nano) to T: time_text(0.0000036) is "3.60 us",
/// time_text(0) "0 s". `seconds` is not negative.
std::string time_text(double seconds);

/// A rate likewise, with prefixes from k on: rate_text(197132, "pps") is "197 kpps", rate_text(0.12, "pps")
/// "0.120 pps", since "120 mpps" reads like millions. `per_second` is not negative.
std::string rate_text(double per_second, std::string_view unit);

}  // namespace catena
