#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile tenant takes from the service and from others: his processes end when they must, his files and requests
have bounds.
"""

import unittest

from harness import TenantTest


class Requests(TenantTest):
    def test_the_attacker_is_served(self):
        self.assertEqual(self.attacker.ask("GET", "/v1/version")[0], 200)


if __name__ == "__main__":
    unittest.main()
