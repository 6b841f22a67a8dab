// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace catena {

/// The file or folder `name` of the checkout of this build. Tests use no path by CATENA_SOURCE_DIR, because the
/// compiler's cache would then not serve another checkout. Any thread.
std::string source_path(std::string_view name);

/// Folder of the test data: CATENA_TEST_DATA, the larger data beside the checkout, or else tests/data/oracles. Tests
/// whose data is missing GTEST_SKIP with that reason. Any thread.
std::string shared_data();

}  // namespace catena
