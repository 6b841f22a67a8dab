// SPDX-License-Identifier: Apache-2.0
#include "nca/function.hpp"

namespace catena::nca {

void FunctionResults::clear() {
  matches.clear();
  rules.clear();
  next_hops.clear();
  ciphered.clear();
  bytes.clear();
  out_of_bounds = 0;
}

nca_function_results FunctionResults::view(nca_kind kind, std::uint32_t packets) const {
  nca_function_results view{};
  view.size = sizeof view;
  view.kind = kind;
  view.out_of_bounds = out_of_bounds;
  switch (kind) {
    case NCA_MATCH:
      view.count = matches.size();
      view.matches = matches.data();
      break;
    case NCA_CLASSIFY:
      view.count = rules.size();
      view.rules = rules.data();
      break;
    case NCA_ROUTE:
      view.count = next_hops.size();
      view.next_hops = next_hops.data();
      break;
    case NCA_CIPHER:
      view.count = ciphered.size();
      view.ciphered = ciphered.data();
      break;
    case NCA_KERNEL:
      view.count = packets;
      view.bytes = bytes.data();
      break;
  }
  return view;
}

}  // namespace catena::nca
