// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Figures shared by several methods in CostModel::h200(). Measured on an H200, PCIe 5 x16, as all coefficients of that
/// model. Where there are figures for one direction alone and for both at once, those for both: a chain always moves
/// both ways.
namespace catena::plan::h200 {

inline constexpr double kBulkNsPerByte = 1 / 50.8;  // pinned copies both ways at once, GB/s each way
inline constexpr double kCopyNs = 2700;             // what is left of 4 KB, 64 KB and 256 KB copies without their bytes

}  // namespace catena::plan::h200
