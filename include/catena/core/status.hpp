// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

/// Errors of the control plane: set-up, configuration, device calls. Packets have a verdict, never a Status.
namespace catena {

using Status = absl::Status;
template <typename T>
using Result = absl::StatusOr<T>;

}  // namespace catena

#define CATENA_CONCAT_INNER(a, b) a##b
#define CATENA_CONCAT(a, b) CATENA_CONCAT_INNER(a, b)

/// Returns from the enclosing function if `expression` (a Status) is not OK.
#define CATENA_RETURN_IF_ERROR(expression)                                      \
  do {                                                                          \
    if (::catena::Status catena_status_ = (expression); !catena_status_.ok()) { \
      return catena_status_;                                                    \
    }                                                                           \
  } while (false)

/// `CATENA_ASSIGN_OR_RETURN(auto x, f());`: x takes the value of the Result, or the function returns its Status.
#define CATENA_ASSIGN_OR_RETURN(declaration, expression) \
  CATENA_ASSIGN_OR_RETURN_INNER(CATENA_CONCAT(catena_result_, __LINE__), declaration, expression)
#define CATENA_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) {                                                  \
    return std::move(result).status();                                 \
  }                                                                    \
  declaration = std::move(result).value()
