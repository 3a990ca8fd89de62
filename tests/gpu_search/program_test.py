"""The program on a device that is the host: kernels that were shipped with it, and servers whose device is lost
or computes wrong scores.

usage: program_test.py HMMJIT_ON_HOST FOLDER_OF_NVRTC
"""
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scenario"))
import scenario  # noqa: E402
from serve_test import Server  # noqa: E402


def rows(table):
    return [line for line in table.split(b"\n") if line and not line.startswith(b"#")]


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmemit or hmmer-examples not installed")
class OnHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="hmmjit-on-host-", dir="/tmp")  # for the path of a socket
        root = cls.folder.name
        cls.model = scenario.example_model("globins4.hmm", root)
        cls.targets, cls.lost, cls.wrong = root + "/targets.fa", root + "/lost", root + "/wrong"
        scenario.write_fasta(cls.targets, scenario.emitted_targets([cls.model], 7, 20, 400) * 10)
        os.environ.update(HMMJIT_NVRTC_DIR=NVRTC, HMMJIT_CACHE_DIR=root + "/share/hmmjit/kernels", HMMJIT_CACHE_SYSTEM_DIR="",
                          TEST_LOST_DEVICE=cls.lost, TEST_WRONG_DEVICE=cls.wrong)
        made = scenario.run([scenario.program, "cache", "warm", "--target", "sm_90", "--model", cls.model])
        if b"without the CUDA headers" in made.stderr:
            raise unittest.SkipTest("the program was built without CUDA headers")
        assert made.returncode == 0, made.stderr
        os.makedirs(root + "/bin")  # an installation, as packages make it
        scenario.program = shutil.copy(scenario.program, root + "/bin/hmmjit")
        os.environ.update(HMMJIT_CACHE_DIR=root + "/empty", HMMJIT_NVRTC_DIR="/nonexistent")
        del os.environ["HMMJIT_CACHE_SYSTEM_DIR"]
        cls.want = rows(cls.search("cpu")[0])
        assert len(cls.want) >= 200, len(cls.want)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def search(cls, device):
        table, statistics = cls.folder.name + "/t", cls.folder.name + "/s"
        done = scenario.search(["--device", device, "--cpu", "1", "-o", "/dev/null", "--tblout", table, "--stats", statistics, cls.model,
                                cls.targets])
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
        return scenario.read(table), json.loads(scenario.read(statistics))

    def test_a_closed_pipe_ends_the_program(self):
        for device in "cpu", "gpu":
            reader, writer = os.pipe()
            os.close(reader)
            with open(writer, "wb") as pipe:
                done = subprocess.run([scenario.program, "search", "--device", device, "--cpu", "1", self.model, self.targets],
                                      stdout=pipe, stderr=subprocess.PIPE, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))

    def test_shipped_kernels_need_no_cache_and_no_compiler(self):
        for _ in range(50):  # a processor can be done before the device begins
            table, statistics = self.search("gpu")
            self.assertEqual(rows(table), self.want)
            gpu = statistics["gpu"]
            if gpu["chains"] > 0:
                break
        self.assertEqual((gpu["state"], gpu["kernels"]["compiled"], gpu["kernels"]["failed"]), ("ready", 0, 0), gpu)
        self.assertGreater(gpu["kernels"]["from_disk"], 4)
        self.assertGreater(gpu["chains"], 0)

    def test_a_server_whose_device_is_lost(self):
        if b"built without a server" in scenario.run([scenario.program, "serve", "--db", "a=b"]).stderr:
            self.skipTest("the program was built without Boost")
        server = Server(self.folder.name, {"targets": self.targets}, device="gpu")
        model = scenario.read(self.model)

        def is_right(device):
            """Whether the answer is the right one; else the server says that it has no device."""
            status, text = server.ask("POST", f"/v1/search?db=targets&output=tblout&cpu=1&device={device}", model)
            if status == 500 and b"the server's GPU has failed" in text:
                return False
            self.assertEqual((status, rows(text)), (200, self.want))
            return True

        def state():
            return json.loads(server.ask("GET", "/health")[1])["device"]

        for _ in range(50):
            self.assertTrue(is_right("gpu"))
            if state() == "ready":
                break
        self.assertEqual(state(), "ready")
        statistics = self.folder.name + "/s"
        done = scenario.run([scenario.program, "search", "--server", server.socket, "--device", "gpu", "--cpu", "1", "-o", "/dev/null",
                             "--stats", statistics, self.model, "targets"])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        kernels = json.loads(scenario.read(statistics))["gpu"]["kernels"]
        self.assertGreater(kernels["distinct"], 0)
        self.assertEqual(kernels["from_disk"], 0)  # earlier searches have found them
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = [pool.submit(is_right, "gpu") for _ in range(8)]
            time.sleep(0.02)
            open(self.lost, "w").close()
            self.addCleanup(os.remove, self.lost)
            self.assertIn(True, [one.result() for one in running])
        for _ in range(50):
            if state() == "failed":
                break
            self.assertTrue(is_right("gpu"))
        self.assertEqual(state(), "failed")
        self.assertIn(b'hmmjit_device{state="failed"} 1\n', server.ask("GET", "/metrics")[1])
        self.assertEqual((is_right("auto"), is_right("gpu")), (True, False))
        self.assertEqual(server.end(), 0)
        self.assertTrue(any("device 0 is given up" in line for line in server.messages), server.messages)
        again = scenario.run([scenario.program, "serve", "--device", "gpu", "--db", f"targets={self.targets}"], timeout=60)
        self.assertEqual((again.returncode, b"ready" in again.stderr), (4, False), again.stderr)

    def test_a_server_whose_device_computes_wrong_scores(self):
        if b"built without a server" in scenario.run([scenario.program, "serve", "--db", "a=b"]).stderr:
            self.skipTest("the program was built without Boost")
        open(self.wrong, "w").close()
        self.addCleanup(os.remove, self.wrong)
        server = Server(self.folder.name, {"targets": self.targets}, device="gpu")

        def ask(device):
            return server.ask("POST", f"/v1/search?db=targets&output=tblout&cpu=1&verify=50&device={device}", scenario.read(self.model))

        for _ in range(50):
            ask("gpu")
            state = json.loads(server.ask("GET", "/health")[1])["device"]
            if state == "failed":
                break
        self.assertEqual(state, "failed")
        status, text = ask("auto")
        self.assertEqual((status, rows(text)), (200, self.want))
        self.assertIn(b"the server's GPU has failed", ask("gpu")[1])
        self.assertEqual(server.end(), 0)
        self.assertTrue(any("computes wrong scores" in line for line in server.messages), server.messages)


if __name__ == "__main__":
    NVRTC = sys.argv.pop(2)
    scenario.main()
