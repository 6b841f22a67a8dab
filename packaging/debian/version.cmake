# SPDX-License-Identifier: Apache-2.0
# CPack reads this when it packs: the version is that of the commit then, not that of the last configuration.
execute_process(COMMAND "${CPACK_CATENA_SOURCE}/tools/package-version" OUTPUT_VARIABLE CPACK_PACKAGE_VERSION
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(CPACK_DEBIAN_PACKAGE_VERSION "${CPACK_PACKAGE_VERSION}")
