/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the rules of a file that a match function refuses. */
#include <nca/nca.h>

#include <stdio.h>

int main(int argc, char** argv) {
  nca_context* context = NULL;
  nca_function* function = NULL;
  nca_match_config match = NCA_INIT(nca_match_config);
  nca_refusal_info refusal = NCA_INIT(nca_refusal_info);
  size_t i;
  if (argc != 2 || nca_open("cpu", NULL, 0, &context) != NCA_OK) {
    return 2;
  }
  match.rules_file = argv[1];
  if (nca_add_network_function(context, NCA_MATCH, &match, &function) != NCA_OK) {
    return 1;
  }
  printf("%zu rules refused\n", nca_function_refusals(function));
  for (i = 0; i < nca_function_refusals(function); ++i) {
    if (nca_function_refusal(function, (uint32_t)i, &refusal) != NCA_OK) {
      return 1;
    }
    printf("%s:%u:%u: %s\n", refusal.file, refusal.line, refusal.column, refusal.reason);
  }
  return nca_close(context) == NCA_OK ? 0 : 1;
}
