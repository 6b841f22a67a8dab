# SPDX-License-Identifier: Apache-2.0
# CPack runs this between installing and packing.
execute_process(COMMAND "${CPACK_CATENA_SOURCE}/packaging/debian/complete" "${CPACK_TEMPORARY_DIRECTORY}"
                        "${CPACK_PACKAGE_VERSION}" "${CPACK_PACKAGE_CONTACT}"
                COMMAND_ERROR_IS_FATAL ANY)
