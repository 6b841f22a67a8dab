#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Streams of every packet size, encrypted by scapy, must come out of a decrypting chain as they were; and a router in
# front of a real capture must leave every checksum right that was right before.
#   run_streams.sh CATENA EXAMPLES_DIR WORK_DIR
set -euo pipefail
oracle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
catena=$1
examples=$(cd "$2" && pwd)
work=$3
mkdir -p "$work"
cd "$work"

chain() { # NF list -> chain file on standard output; rx and tx are given on the command line
  printf '%s\n' 'apiVersion: catena/v1' 'kind: Chain' 'metadata: {name: oracle}' 'spec:' "  rx: {pcap: $examples/branch-office.pcap}" \
    '  tx: null' '  nfs:' "$@"
}
run() { # CHAIN IN OUT
  "$catena" run "$1" --rx "pcap:$2" --tx "pcap:$3" >catena.log 2>&1 || {
    cat catena.log >&2
    exit 1
  }
}

chain "    - {name: vpn, type: ipsec, on: gpu, config: {direction: decrypt, sa: $examples/branch-office/sa.yaml}}" >decrypt.yaml
chain "    - {name: rt, type: router, on: gpu, config: {routes: $examples/branch-office/routes.txt}}" >route.yaml

for size in 64 512 1518 imix; do
  if [[ $size == imix ]]; then
    "$oracle/make_streams.py" imix clear.pcap --count 240
  else
    "$oracle/make_streams.py" fixed clear.pcap --bytes "$size" --count 240
  fi
  "$oracle/make_streams.py" esp clear.pcap "$examples/branch-office/sa.yaml" esp.pcap
  run decrypt.yaml esp.pcap decrypted.pcap
  echo "$size: $("$oracle/check_pcap_equal.py" clear.pcap decrypted.pcap)"
done

run route.yaml "$examples/branch-office.pcap" routed.pcap
"$oracle/check_checksums.py" routed.pcap --input "$examples/branch-office.pcap"
