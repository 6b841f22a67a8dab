# SPDX-License-Identifier: Apache-2.0
"""Lets tshark collect IPFIX from the first datagram of a capture on.

tshark_templates.py DATAGRAMS
Prints the data records that it could read; the seconds from the first message to the first one with data that it could
read; and the most seconds from templates to data, all by export times.
"""
import subprocess
import sys

FIELDS = ["cflow.exporttime", "cflow.template_id", "cflow.srcaddr"]


def messages_of(capture):
    """(export time, whether it has templates, records) of each."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    command = ["tshark", "-n", "-r", capture, "-T", "fields", "-E", "separator=;", *fields]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        time, templates, sources = line.split(";")
        yield int(time), templates != "", len(sources.split(",")) if sources else 0


def main():
    messages = list(messages_of(sys.argv[1]))
    read, worst, first, templates_at = 0, 0, None, None
    for time, has_templates, records in messages:
        if has_templates:
            templates_at = time
        if records > 0:
            first = time if first is None else first
            worst = max(worst, time - templates_at)
        read += records
    print("%d records; the first after %d s; data at most %d s after templates" % (read, first - messages[0][0], worst))


main()
