#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may do what with `catena serve`: files are opened with the rights of the one who asks, chains and tenants are
somebody's. Most of it needs root, which becomes other users.
"""

import os
import pathlib
import signal
import subprocess
import unittest

from command import HAS_PROCESSES, threads_of
from harness import (ATTACKER, BIN, DATA, IS_ROOT, LIMIT_S, TENANTS, VICTIM, Service, ServiceTest, TenantTest, ask, as_user,
                     connect, firewall, wait_for)

ANN, BOB = VICTIM, ATTACKER
GROUP = 64_100


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True


class Rights(TenantTest):
    def setUp(self):
        super().setUp()
        self.of_ann = self.victim.folder

    def chain_of(self, uid, name, **kinds):
        """A chain file that only `uid` may read."""
        path = pathlib.Path(self.chain(name, **kinds))
        path.chmod(0o600)
        os.chown(path, uid, uid)
        return str(path)

    def rules(self, mode, uid, gid):
        path = self.folder / "own.rules"
        path.write_text(pathlib.Path(f"{DATA}/fw.rules").read_text())
        path.chmod(mode)
        os.chown(path, uid, gid)
        return str(path)

    def ask_as(self, uid, method, resource, body=None, groups=()):
        return self.service.ask(method, resource, body, user=uid, groups=groups)

    def test_a_user_runs_a_chain_of_his_own_files(self):
        out = self.of_ann / "out.pcap"
        file = self.chain_of(ANN, "a", rx="{generator: {count: 10}}", tx=f"{{pcap: {out}}}",
                             nfs=firewall(self.rules(0o600, ANN, ANN)))
        answer = self.applied(self.service, file, user=ANN, record=str(self.of_ann / "record"))
        self.assertEqual(answer["uid"], ANN)
        wait_for(lambda: self.state(self.service, "a") == "finished")
        for path in (out, self.of_ann / "record"):
            self.assertEqual((path.stat().st_uid, path.stat().st_gid), (ANN, ANN))
            self.assertGreater(path.stat().st_size, 0)

    def test_an_apply_warns_of_keys_that_others_can_read(self):
        sa = self.victim.copy(f"{DATA}/sa-all.yaml")
        nfs = f"[{{name: vpn, type: ipsec, config: {{direction: encrypt, sa: {sa}}}}}]"
        file = self.chain_of(ANN, "a", rx="{generator: {count: 10}}", nfs=nfs)
        for mode, warnings in ((0o600, 0), (0o640, 1), (0o644, 1)):
            os.chmod(sa, mode)
            answer = self.applied(self.service, file, user=ANN, accept_loss=True)
            self.assertEqual(len(answer["warnings"]), warnings, answer["warnings"])
        self.assertIn(f"{sa} has keys and is readable by users other than its owner", answer["warnings"][0])
        self.assertTrue(answer["warnings"][0].startswith(f"{file}:"), answer["warnings"])
        self.assertEqual(self.service.log().count("has keys and is readable"), 2)
        done = self.cli(self.service, "apply", file, "--dry-run")
        self.assertIn(f"\n  WARNING {file}:", done.stdout)

    def test_a_refused_apply_of_another_user_ends_nothing(self):
        more = f"  outputs: {{record: {self.of_ann / 'record'}}}\n"
        rx = "{generator: {rate: 1000}}"
        self.applied(self.service, self.chain_of(ANN, "a", rx=rx, more=more), user=ANN)
        wait_for(lambda: self.state(self.service, "a") == "running")
        file = self.chain_of(ANN, "a", rx=rx, more=more + "  device_servers: process\n")
        status, answer = self.apply(self.service, file, accept_loss=True)
        self.assertEqual(status, 400, answer)
        self.assertIn("'device_servers' is process", answer["error"])
        self.assertEqual(self.state(self.service, "a"), "running")

    def test_outputs_in_the_file_of_a_user_are_his(self):
        record = self.of_ann / "record"
        file = self.chain_of(ANN, "a", rx="{generator: {count: 10}}", nfs=firewall(self.rules(0o600, ANN, ANN)),
                             more=f"  outputs: {{record: {record}}}\n")
        self.applied(self.service, file, user=ANN)
        wait_for(lambda: self.state(self.service, "a") == "finished")
        self.assertEqual((record.stat().st_uid, record.stat().st_gid), (ANN, ANN))
        self.assertEqual(len(record.read_text().splitlines()), 10)

    def test_a_rotated_output_of_a_user_is_opened_with_his_rights(self):
        record, flows = self.of_ann / "record", self.of_ann / "flows"
        place = "process" if HAS_PROCESSES else "none"
        nfs = [firewall(self.rules(0o600, ANN, ANN))[1:-1].replace("type:", f"isolation: {place}, type:"),
               f"{{name: m, type: monitor, isolation: none, config: {{active_timeout_s: 1, export: [{{format: json, file: {flows}}}]}}}}",
               f"{{name: own, type: monitor, isolation: {place},"
               f" config: {{active_timeout_s: 1, export: [{{format: json, file: {flows}.own}}]}}}}"]
        outputs = [record, flows, pathlib.Path(f"{flows}.own")]
        file = self.chain_of(ANN, "a", rx="{generator: {rate: 2000}}", nfs=f"[{', '.join(nfs)}]",
                             more=f"  outputs: {{record: {record}}}\n")
        self.applied(self.service, file, user=ANN)
        for path in outputs:
            wait_for(lambda path=path: path.exists() and path.stat().st_size > 0)
            path.rename(f"{path}.1")
        roots = self.folder / "roots"  # Ann may link to it, but not write to it
        roots.write_text("precious")
        self.service.process.send_signal(signal.SIGHUP)
        for path in outputs:
            wait_for(lambda path=path: path.exists() and path.stat().st_size > 0)
            self.assertEqual((path.stat().st_uid, path.stat().st_gid), (ANN, ANN))
            path.unlink()
            path.symlink_to(roots)
        self.service.process.send_signal(signal.SIGUSR1)
        for path in outputs:
            wait_for(lambda path=path: f"{path}" in self.service.log())
        self.assertEqual(self.state(self.service, "a"), "running")
        self.assertEqual(roots.read_text(), "precious")

    def test_a_user_reads_no_file_of_another_through_the_service(self):
        secret = self.rules(0o600, 0, 0)
        file = self.chain_of(ANN, "a", nfs=firewall(secret))
        status, answer = self.apply(self.service, file, user=ANN)
        self.assertIn(status, (400, 403))
        self.assertIn(secret, answer["error"])
        self.assertEqual(self.ask_as(ANN, "GET", "/v1/chains")[1]["chains"], [])
        self.assertEqual(self.applied(self.service, file)["uid"], 0)  # root may

    def test_a_user_names_no_chain_file_that_he_may_not_read(self):
        for uid in (0, BOB):
            status, answer = self.apply(self.service, self.chain_of(uid, "a"), user=ANN)
            self.assertIn(status, (400, 403), answer)

    def test_a_user_writes_no_file_of_another_through_the_service(self):
        mine = self.folder / "roots.pcap"
        mine.write_bytes(b"precious")
        for options in ({"tx": f"pcap:{mine}"}, {"record": str(mine)}, {"eve": str(mine)}, {"trace": str(mine)},
                        {"tx": f"pcap:{self.folder}/new.pcap"}):
            status, answer = self.apply(self.service, self.chain_of(ANN, "a"), user=ANN, **options)
            self.assertIn(status, (400, 403), answer)
        for key in ("record", "eve", "trace"):
            for path in (mine, self.folder / "new.pcap"):
                file = self.chain_of(ANN, "a", more=f"  outputs: {{{key}: {path}}}\n")
                status, answer = self.apply(self.service, file, user=ANN)
                self.assertIn(status, (400, 403), answer)
                self.assertIn(f"'{key}': {path} cannot be written", answer["error"])
        self.assertEqual(mine.read_bytes(), b"precious")
        self.assertFalse((self.folder / "new.pcap").exists())

    def test_supplementary_groups_count(self):
        file = self.chain_of(ANN, "a", nfs=firewall(self.rules(0o640, 0, GROUP)))
        self.assertIn(self.apply(self.service, file, user=ANN)[0], (400, 403))
        self.applied(self.service, file, user=ANN, groups=[GROUP])

    def test_a_user_gets_no_interface_and_no_driver(self):
        for device in ("{dev: lo}", "{dpdk: net_null0}"):
            for ends in ({"rx": device}, {"tx": device}):
                status, answer = self.apply(self.service, self.chain_of(ANN, "a", **ends), user=ANN)
                self.assertEqual(status, 403)
                self.assertIn("only root", answer["error"])

    def test_a_user_sees_nothing_of_the_process(self):
        maps = self.folder / "innocent"
        os.symlink("/proc/self/maps", maps)
        for file in (str(maps), self.chain_of(ANN, "a", nfs=firewall(maps)),
                     self.chain_of(ANN, "a", rx=f"{{pcap: {maps}}}")):
            status, answer = self.apply(self.service, file, user=ANN)
            self.assertEqual((status, answer["error"].count("\n")), (403, 0), answer)
            self.assertNotIn("r-x", answer["error"])

    def test_the_threads_of_a_chain_have_the_users_rights_and_no_others_do(self):
        before = len(threads_of(self.service.process.pid))
        self.applied(self.service, self.chain_of(ANN, "a", nfs=firewall()), user=ANN, groups=[GROUP])
        threads = threads_of(self.service.process.pid).values()
        of_ann = [each for each in threads if each["Uid"].split()[3] == str(ANN)]
        self.assertGreaterEqual(len(of_ann), 1)
        for each in of_ann:
            self.assertEqual(each["Uid"].split(), ["0", "0", "0", str(ANN)])  # so that she may send it no signal
            self.assertEqual(each["Gid"].split()[3], str(ANN))
            self.assertEqual(each["Groups"].split(), [str(TENANTS), str(GROUP)])
            self.assertEqual({each[kind].strip("0") for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb")}, {""})
            self.assertEqual(each["NoNewPrivs"], "1")
        others = [each for each in threads if each["Uid"].split()[3] == "0"]
        self.assertGreaterEqual(len(others), before - 1)
        self.assertNotIn("", {each["CapEff"].strip("0") for each in others})

    def test_a_users_kernels_are_compiled_by_the_service(self):
        on_gpu = firewall().replace("type: firewall", "type: firewall, on: gpu, isolation: none")
        file = self.chain_of(ANN, "a", rx="{generator: {count: 100}}", nfs=on_gpu)
        answer = self.applied(self.service, file, user=ANN, device="opencl")
        self.assertEqual(answer["nfs"][0]["on"], "gpu")
        wait_for(lambda: self.state(self.service, "a") == "finished")
        self.assertEqual(self.service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"], 100)
        self.assertNotIn("warning", self.service.log())
        # what drivers start and keep is nobody's but the service's
        self.assertEqual({each["Uid"].split()[3] for each in threads_of(self.service.process.pid).values()}, {"0"})

    def test_a_chain_is_its_users(self):
        file = self.chain_of(ANN, "a")
        self.applied(self.service, file, user=ANN)
        self.assertEqual(self.ask_as(BOB, "GET", "/v1/chains"), (200, {"chains": []}))
        self.assertNotIn('chain="a"', self.ask_as(BOB, "GET", "/metrics")[1])
        self.assertIn('chain="a"', self.ask_as(ANN, "GET", "/metrics")[1])
        for method, path, body in (("GET", "a", None), ("DELETE", "a", None), ("POST", "a/stop", None),
                                   ("PUT", "a", {"file": self.chain_of(BOB, "a", file="bobs.yaml")})):
            status, answer = self.ask_as(BOB, method, f"/v1/chains/{path}", body)
            self.assertEqual(status, 403, answer)
            self.assertIn("another user's", answer["error"])
        self.assertEqual(self.state(self.service, "a"), "running")
        self.assertEqual(self.ask_as(ANN, "POST", "/v1/chains/a/stop")[0], 200)
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/a")[0], 200)  # root

    def test_a_tenant_is_the_first_users_while_there_is_a_chain_of_it(self):
        red = "  tenant: red\n"
        self.applied(self.service, self.chain_of(ANN, "a", more=red), user=ANN)
        of_bob = self.chain_of(BOB, "b", more=red)
        status, answer = self.apply(self.service, of_bob, user=BOB)
        self.assertEqual((status, answer["error"]), (403, "tenant 'red' is another user's"))
        # a chain that says nothing is of a tenant with its own name
        self.assertEqual(self.apply(self.service, self.chain_of(BOB, "red"), user=BOB)[0], 403)
        self.applied(self.service, self.chain("roots", more=red))
        self.applied(self.service, self.chain_of(ANN, "a2", more=red), user=ANN)
        for name in ("a", "a2"):
            self.assertEqual(self.ask_as(ANN, "DELETE", f"/v1/chains/{name}")[0], 200)
        self.assertEqual(self.apply(self.service, of_bob, user=BOB)[0], 403)
        self.service.ask("DELETE", "/v1/chains/roots")
        self.applied(self.service, of_bob, user=BOB)

    def test_nor_is_it_anothers_while_a_chain_becomes_one_of_it(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        fifo.chmod(0o666)
        red = "  tenant: red\n"
        self.applied(self.service, self.chain_of(ANN, "a"), user=ANN)
        file = self.chain_of(ANN, "a", more=red, tx=f"{{pcap: {fifo}}}", file="next.yaml")
        waiting = self.victim.begin_to_apply(file, accept_loss=True)
        wait_for(lambda: "waiting for a reader" in self.service.log())
        status, answer = self.apply(self.service, self.chain_of(BOB, "b", more=red), user=BOB)
        self.assertEqual((status, answer["error"]), (403, "tenant 'red' is another user's"))
        self.applied(self.service, self.chain_of(ANN, "a2", more=red), user=ANN)
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/a")[0], 200)
        waiting.close()

    def test_a_service_that_starts_again_gives_nobody_more_rights(self):
        secret = self.rules(0o600, ANN, ANN)
        self.applied(self.service, self.chain_of(ANN, "a", nfs=firewall(secret)), user=ANN)
        self.assertEqual(self.service.end(), 0)
        os.chown(secret, 0, 0)
        self.service = self.serve()
        wait_for(lambda: self.state(self.service, "a") == "failed")
        self.assertIn(secret, self.service.ask("GET", "/v1/chains/a")[1]["error"])
        self.assertEqual(self.service.end(), 0)
        os.chown(secret, ANN, ANN)
        self.service = self.serve()
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertIn(str(ANN), {each["Uid"].split()[3] for each in threads_of(self.service.process.pid).values()})

    def test_one_users_connections_keep_no_other_out(self):
        idle = [connect(self.service.socket, ANN, [TENANTS]) for _ in range(150)]
        # more than the service takes, and than it takes from one user: those are closed at once, not when they time out
        wait_for(lambda: sum(not is_open(each) for each in idle) == 150 - 32, 5)
        self.assertEqual(self.ask_as(BOB, "GET", "/v1/version")[0], 200)
        self.assertEqual([is_open(each) for each in idle], [True] * 32 + [False] * (150 - 32))
        for each in idle:
            each.close()

        def is_answered():
            try:
                return self.ask_as(ANN, "GET", "/v1/version")[0] == 200
            except ConnectionError:  # the service has not seen all of them close
                return False

        wait_for(is_answered)

    def test_requests_of_users_that_wait_for_ever_keep_root_from_nothing(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        fifo.chmod(0o666)
        waiting = []
        for tenant in (self.victim, self.attacker):
            for number in range(12):
                file = self.chain(f"{tenant.uid}-{number}", tx=f"{{pcap: {fifo}}}", more="  tuning: {pool_slots: 2048}\n")
                waiting.append(tenant.begin_to_apply(file))
        wait_for(lambda: self.service.log().count("waiting for a reader") == 24)
        self.assertEqual(self.apply(self.service, self.chain_of(ANN, "more"), user=ANN)[0], 503)
        status, answer = self.service.ask("GET", "/v1/chains")
        self.assertEqual((status, len(answer.get("chains", []))), (200, 24), answer)
        for each in answer["chains"]:
            self.assertEqual(self.service.ask("DELETE", f"/v1/chains/{each['name']}")[0], 200)
        self.assertEqual([each.answer()[0] for each in waiting], [409] * 24)
        self.applied(self.service, self.chain_of(ANN, "more"), user=ANN)

    def test_there_is_room_for_so_many_chains_of_a_user(self):
        files = [self.chain_of(ANN, f"a{number}", rx="{generator: {count: 1}}") for number in range(33)]
        answers = [self.apply(self.service, file, user=ANN) for file in files]
        self.assertEqual({status for status, _ in answers[:32]}, {201})
        self.assertEqual(answers[32][0], 503)
        self.assertIn("is 32; 32 used, 1 asked", answers[32][1]["error"])
        self.assertEqual(self.apply(self.service, files[0], user=ANN)[0], 200)
        self.applied(self.service, self.chain_of(BOB, "b"), user=BOB)

    def test_the_socket_is_for_its_group(self):
        self.assertEqual(self.service.end(), 0)
        self.service = self.serve()
        self.assertEqual(os.stat(self.service.socket).st_mode & 0o777, 0o660)
        denied = as_user(ANN, [], lambda: os.access(self.service.socket, os.W_OK))
        self.assertFalse(denied)

    def test_state_of_another_user_is_not_believed(self):
        self.assertEqual(self.service.end(), 0)
        os.chown(self.folder / "state", ANN, ANN)
        done = subprocess.run([BIN, "serve", "--socket", self.folder / "s", "--state", self.folder / "state"],
                              capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("belongs to user", done.stderr)


@unittest.skipUnless(IS_ROOT, "root can become other users, others cannot")
class ServiceOfAUser(ServiceTest):
    def test_it_serves_its_user_and_root_alone(self):
        os.chown(self.folder, ANN, ANN)
        program = os.open(BIN, os.O_RDONLY)  # its folder may be closed to other users
        self.addCleanup(os.close, program)

        class OfAnn(Service):
            def __init__(self, folder):
                self.socket = str(folder / "s")
                self.log_path = folder / "log"
                with open(self.log_path, "ab") as log:
                    self.process = subprocess.Popen(
                        [f"/proc/self/fd/{program}", "serve", "--socket", self.socket, "--state", str(folder / "state")],
                        stdout=log, stderr=log, user=ANN, group=ANN, extra_groups=[], pass_fds=[program])
                wait_for(self.answers)

        service = OfAnn(self.folder)
        self.services.append(service)
        os.chmod(service.socket, 0o666)
        file = self.chain("a")
        self.applied(service, file, user=ANN)
        self.assertEqual(self.state(service, "a"), "running")  # root
        status, answer = as_user(BOB, [], lambda: ask(service.socket, "GET", "/v1/chains"))
        self.assertEqual(status, 403)
        self.assertIn(f"runs as user {ANN}", answer["error"])


if __name__ == "__main__":
    unittest.main()
