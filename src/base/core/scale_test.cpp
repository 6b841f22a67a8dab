// SPDX-License-Identifier: Apache-2.0
#include "base/core/scale.hpp"

#include <gtest/gtest.h>

namespace catena {
namespace {

TEST(Scale, a_time_has_three_digits_and_the_prefix_that_suits) {
  for (const auto& [value, text] : std::vector<std::pair<double, std::string>>{{0, "0 s"},
                                                                               {1, "1.00 s"},
                                                                               {0.0000036, "3.60 us"},
                                                                               {0.1971323, "197 ms"},
                                                                               {0.0309, "30.9 ms"},
                                                                               {9.994, "9.99 s"},
                                                                               {9.996, "10.0 s"},
                                                                               {99.96, "100 s"},
                                                                               {999.4, "999 s"},
                                                                               {999.6, "1.00 ks"},
                                                                               {0.9996, "1.00 s"},
                                                                               {79.4e3, "79.4 ks"},
                                                                               {314.2e9, "314 Gs"},
                                                                               {2e15, "2000 Ts"},
                                                                               {2e-12, "0.002 ns"}}) {
    EXPECT_EQ(time_text(value), text) << value;
  }
}

TEST(Scale, a_rate_below_one_has_no_prefix_that_reads_like_millions) {
  for (const auto& [value, text] : std::vector<std::pair<double, std::string>>{{0, "0 pps"},
                                                                               {0.12, "0.120 pps"},
                                                                               {0.0004, "0.000 pps"},
                                                                               {0.9996, "1.00 pps"},
                                                                               {40.2, "40.2 pps"},
                                                                               {197'132, "197 kpps"},
                                                                               {2.5e6, "2.50 Mpps"},
                                                                               {1.2e9, "1.20 Gpps"}}) {
    EXPECT_EQ(rate_text(value, "pps"), text) << value;
  }
}

}  // namespace
}  // namespace catena
