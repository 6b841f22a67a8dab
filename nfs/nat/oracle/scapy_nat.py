# SPDX-License-Identifier: Apache-2.0
"""scapy_nat.py FOLDER   writes in.pcap (what arrives) and expected.pcap (what scapy says must leave) into FOLDER"""
import os
import random
import sys

from frames import write_frames
from sessions import sessions

random.seed(20)
rows = list(sessions(200))
write_frames(os.path.join(sys.argv[1], "in.pcap"), [before for _, before, _ in rows])
write_frames(os.path.join(sys.argv[1], "expected.pcap"), [after for _, _, after in rows])
