#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""match_pcap.py NCA.H STRINGS CAPTURE DEVICE: what match_pcap.c prints, from Python through cffi."""
import struct
import sys

import cffi

header, strings, capture, device = sys.argv[1:]
ffi = cffi.FFI()
ffi.cdef(open(header).read().split("#pragma GCC visibility push(default)")[1].split("#pragma GCC visibility pop")[0])
nca = ffi.dlopen("libnca.so.0")


def make(call, kind, *arguments):
    """What a call gives out through its last argument."""
    made = ffi.new(kind)
    code = call(*arguments, made)
    if code != nca.NCA_OK:
        sys.exit(ffi.string(nca.nca_error_text(code)).decode())
    return made[0]


context = make(nca.nca_open, "nca_context **", device.encode(), ffi.NULL, 0)
name = ffi.new("char[]", strings.encode())
match = ffi.new("nca_match_config *", {"size": ffi.sizeof("nca_match_config"), "strings_file": name})
functions = ffi.new("nca_function *[]", [make(nca.nca_add_network_function, "nca_function **", context, nca.NCA_MATCH, match)])
config = ffi.new("nca_stream_config *", {"size": ffi.sizeof("nca_stream_config"), "functions": functions,
                                         "function_count": 1, "packet_bytes": 65535})
stream = make(nca.nca_traffic_stream_init, "nca_stream **", context, config)
results = ffi.new("nca_results *", {"size": ffi.sizeof("nca_results")})


def print_results():
    while nca.nca_read_results(stream, results) == nca.NCA_OK:
        for found in ffi.unpack(results.functions[0].matches, results.functions[0].count):
            print(results.tags[found.packet], found.pattern, found.end, sep="\t")
        nca.nca_release_results(stream, results)


data, at, tag = open(capture, "rb").read(), 24, 0
while at < len(data):
    length = struct.unpack_from("<8xI", data, at)[0]
    packet = ffi.new("nca_packet *", {"data": ffi.from_buffer(data) + at + 16, "tag": tag, "length": length})
    while nca.nca_add_packets(stream, packet, 1, ffi.NULL) == nca.NCA_ERROR_FULL:
        print_results()
    at, tag = at + 16 + length, tag + 1
nca.nca_flush(stream, -1)
print_results()
nca.nca_stream_close(stream)
nca.nca_close(context)
