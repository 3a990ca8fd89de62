"""hmmjit serve under load and attack: every answer is complete and right or refused, and nothing is left when all clients have
gone.

HMMJIT_TEST_ALL: 1,000 clients; otherwise 50 clients, in seconds. benchmarks/serve_latency.py measures latencies.
"""
import contextlib
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from collections import Counter

import scenario
from serve_test import Server, poll

ALL = "HMMJIT_TEST_ALL" in os.environ
CLIENTS = 1000 if ALL else 50
REFUSALS = (b"too many queries; try again later\n", b"queries wait; try again later\n")


def rows(table):
    return [line for line in table.split(b"\n") if line and not line.startswith(b"#")]


class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if b"built without a server" in scenario.run([scenario.program, "serve", "--db", "a=b"]).stderr:
            raise unittest.SkipTest("the program was built without Boost")
        random.seed(scenario.SEED)
        cls.folder = tempfile.mkdtemp(prefix="hmmjit-load-test-", dir="/tmp")  # the path of a socket has 107 bytes at most
        cls.model = scenario.read(scenario.example_model("globins4.hmm", cls.folder))
        shutil.copy(scenario.example_model("globins45.fa", cls.folder), cls.folder + "/globins45.fa")
        scenario.write(cls.folder + "/few.fa", b">".join(scenario.read(cls.folder + "/globins45.fa").split(b">")[:21]))
        cls.file = os.path.join(cls.folder, "model.hmm")
        scenario.write(cls.file, cls.model)
        # An answer too large for the buffers of a socket.
        scenario.write_fasta(cls.folder + "/many.fa", scenario.emitted_targets([cls.file], 3, 1500, 100))
        cls.want = {name + option: rows(scenario.run([scenario.program, "search", "--quiet", "-o", "/dev/null", "--tblout",
                                                      "/dev/stdout", *option.split(), cls.file, f"{cls.folder}/{name}.fa"]).stdout)
                    for name in ("globins45", "few", "many") for option in ("", " --max")}
        assert len(cls.want["many"]) > 1000 and len(cls.want["globins45"]) == 45, [len(w) for w in cls.want.values()]
        assert len(cls.want["few"]) == 20

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def server(self, folder, names, *options):
        return Server(folder, {name: f"{self.folder}/{name}.fa" for name in names}, options)

    def use(self, server):
        """Descriptors, threads, and folders of queries."""
        process = f"/proc/{server.process.pid}"
        folders = [name for _, names, _ in os.walk(server.temporary) for name in names]
        return len(os.listdir(process + "/fd")), len(os.listdir(process + "/task")), len(folders)

    def check_released(self, server, before):
        self.assertEqual(poll(lambda: self.use(server), lambda now: now == before, times=1200), before)
        self.assertEqual((server.metric("hmmjit_running"), server.metric("hmmjit_queued")), (0, 0))

    def request(self, database, body, output="tblout", head=b""):
        return (b"POST /v1/search?db=%s&output=%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n"
                % (database.encode(), output.encode(), len(body), head)) + body

    def receive(self, connection, slowly=False):
        parts = []
        while True:
            if slowly and len(parts) < 30:
                time.sleep(0.05)
            part = connection.recv(4096 if slowly else 1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)

    def judge(self, answer, wanted):
        """An answer is right to the last byte, or a refusal."""
        head, _, body = answer.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 503") and body.endswith(REFUSALS):
            return "refused"
        self.assertEqual(head[:12], b"HTTP/1.1 200", answer[:300])
        self.assertIn(rows(body), wanted)
        return "answered"

    def client(self, kind, server, database, wanted):
        connection = server.raw(timeout=900)
        try:
            whole = self.request(database, self.model)
            if kind == "breaks off in the request":
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(whole[:random.randrange(1, len(whole))])
                return "gone"
            if kind == "malformed":
                connection.sendall(bytes(random.choices(range(256), k=200)) + b"\r\n\r\n")
                return self.receive(connection)[9:12].decode() or "closed"
            if kind == "too large":
                connection.sendall(self.request(database, b"x" * (3 << 20)))
                return self.receive(connection)[9:12].decode()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(whole)  # a refusal may come first
            if kind == "breaks off in the answer":
                connection.recv(random.randrange(1, 5000))
                return "gone"
            return self.judge(self.receive(connection, kind == "reads slowly"), wanted)
        except (BrokenPipeError, ConnectionResetError):
            if kind not in ("malformed", "too large"):
                raise
            return "closed"
        finally:
            connection.close()

    def killed_client(self, server, database):
        client = subprocess.Popen([scenario.program, "search", "--server", server.socket, "--max", self.file, database],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.2)
        client.kill()
        client.wait()
        return "gone"

    def test_clients_of_all_kinds(self):
        kinds = ["plain"] * 5 + ["reads slowly", "breaks off in the request", "breaks off in the answer", "malformed", "too large",
                                 "killed"]
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            server = self.server(folder, ("globins45", "many"), "--max-request", "2M", "--queued", str(CLIENTS // 2))
            before, results, failures = self.use(server), Counter(), []

            def one(kind, database):
                try:
                    while True:
                        result = self.killed_client(server, database) if kind == "killed" else \
                            self.client(kind, server, database, [self.want[database]])
                        results[kind, result] += 1
                        if result != "refused" or results[kind, "answered"]:  # one of each kind is answered
                            break
                        time.sleep(0.1)
                except Exception as error:  # of a thread
                    failures.append((kind, error))

            chosen = ["reads slowly", "plain", *random.choices(kinds, k=CLIENTS - 2)]
            threads = [threading.Thread(target=one, args=(kind, random.choice(("globins45", "many")))) for kind in chosen]
            begun = time.time()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            taken = time.time() - begun
            self.assertEqual(failures, [])
            for (kind, result), number in sorted(results.items()):
                print(f"{kind}: {result} {number}")
            print(f"{CLIENTS} clients in {taken:.1f} s")
            self.assertGreater(results["plain", "answered"], 0)
            self.assertGreater(results["reads slowly", "answered"], 0)
            self.assertLessEqual({result for kind, result in results if kind == "too large"}, {"413", "503", "closed"})
            self.check_released(server, before)
            status = scenario.read(f"/proc/{server.process.pid}/status").decode()
            print("memory:", re.search(r"VmRSS:\s*(.*)", status)[1], "at most", re.search(r"VmHWM:\s*(.*)", status)[1])
            self.assertEqual(self.client("plain", server, "many", [self.want["many"]]), "answered")
            self.assertEqual(server.end(), 0, server.messages)

    def test_two_databases_replaced(self):
        versions = [self.want["globins45"], self.want["few"]]
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            paths = {name: os.path.join(folder, name) for name in ("a", "b")}
            for path in paths.values():
                shutil.copy(self.folder + "/globins45.fa", path)
            server = Server(folder, paths)
            stop, seen, failures = threading.Event(), Counter(), []

            def ask(database):
                while not stop.is_set():
                    try:
                        answer = server.ask("POST", f"/v1/search?db={database}&output=tblout", self.model)
                        self.assertEqual(answer[0], 200, answer[1])
                        seen[database, versions.index(rows(answer[1]))] += 1
                    except Exception as error:  # of a thread
                        failures.append(error)
                        return

            threads = [threading.Thread(target=ask, args=(name,)) for name in paths for _ in range(4)]
            for thread in threads:
                thread.start()
            for i in range(200 if ALL else 12):
                for path in paths.values():
                    shutil.copy(self.folder + ("/few.fa" if i % 2 == 0 else "/globins45.fa"), path + ".new")
                    os.rename(path + ".new", path)
                asked, until = Counter(seen), time.monotonic() + 60
                server.process.send_signal(1)
                while any(seen[name, 1 - i % 2] == asked[name, 1 - i % 2] for name in paths) and time.monotonic() < until:
                    time.sleep(0.01)
            stop.set()
            for thread in threads:
                thread.join()
            print("answers by database and version:", dict(seen))
            self.assertEqual(failures, [])
            self.assertEqual(len(seen), 4, seen)
            self.assertEqual(server.end(), 0, server.messages)

    def test_end_under_load(self):
        """On SIGTERM queries that were accepted have their answers, others are refused; after kill -9 no output is left."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            for signal_number, copies in ((15, 2), (9, 100)):  # few for answers, many that are never answered
                several = scenario.write(folder + "/several.hmm", self.model * copies)
                server = self.server(folder, ("many",), "--running", "2")
                clients = [subprocess.Popen([scenario.program, "search", "--server", server.socket, "--max", "--tblout", f"{folder}/{i}",
                                             several, "many"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for i in range(10)]
                server.wait("hmmjit_running", 2)
                server.process.send_signal(signal_number)
                statuses, messages = Counter(), set()
                for i, client in enumerate(clients):
                    text = client.communicate(timeout=120)[1]
                    statuses[client.returncode] += 1
                    if client.returncode == 0:
                        self.assertEqual(rows(scenario.read(f"{folder}/{i}")), self.want["many --max"] * copies)
                        os.remove(f"{folder}/{i}")
                    else:
                        messages.add(text.split(b": ", 2)[-1])
                    self.assertFalse(os.path.exists(f"{folder}/{i}"))
                print(f"signal {signal_number}:", dict(statuses), messages)
                self.assertLessEqual(set(statuses), {0, 5})
                self.assertEqual(server.process.wait(60), 0 if signal_number == 15 else -9)
                self.assertGreaterEqual(statuses[0 if signal_number == 15 else 5], 2)
                server.close()

    def test_full_disk(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            place = os.path.join(folder, "temporary")
            os.mkdir(place)
            private = ["unshare", "--map-root-user", "--mount", "bash", "-c", f'mount -t tmpfs -o size=1m none {place} && exec "$@"', "bash"]
            if scenario.run([*private, "true"]).returncode != 0:
                self.skipTest("no private mounts here")
            server = Server(folder, {"many": self.folder + "/many.fa", "globins45": self.folder + "/globins45.fa"}, prefix=private)
            words = [scenario.program, "search", "--server", server.socket, "--max", "--tblout", folder + "/t", self.file]
            for _ in range(3):
                full = scenario.run([*words, "many"])
                self.assertEqual((full.returncode, b"the server cannot write: No space left on device" in full.stderr), (5, True), full.stderr)
                self.assertFalse(os.path.exists(folder + "/t"))
                large = server.ask("POST", "/v1/search?db=globins45", b"x" * (2 << 20))
                self.assertEqual((large[0], b"No space left" in large[1]), (507, True), large)
                for _ in range(50):
                    done = scenario.run([*words, "globins45"])
                    if done.returncode == 0:
                        break
                    time.sleep(0.1)  # an answered query frees its room a moment later
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(rows(scenario.read(folder + "/t")), self.want["globins45 --max"])
                os.remove(folder + "/t")
            own = scenario.run([*words[:5], "--tblout", "/dev/full", self.file, "globins45"])
            self.assertEqual((own.returncode, b"/dev/full: cannot write" in own.stderr), (7, True), own.stderr)
            self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    scenario.main()
