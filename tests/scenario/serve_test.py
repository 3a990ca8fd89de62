"""hmmjit serve: the same bytes, messages and exit statuses as without it, for many clients at a time, and for those that
break off, send rubbish or are killed.

Recorded runs are replayed through it where shared/data is there (scenario.py).
"""
import atexit
import fcntl
import fnmatch
import gzip
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import scenario

# Lines that differ from run to run.
CLOCKS = re.compile(rb'^# (CPU time|Mc/sec|Date):.*|^DATE .*|"date":"[^"]*"', re.MULTILINE)
# Small recorded runs: of search every option; of the other programs each kind of options and inputs, and all that they
# refuse. live_builder replays those programs without a server.
SEARCHES = ["opt_rrm1_*", "opt_acc_notextw", "lee_*", "hmmer_short"]
PROGRAMS = ["ph_hbb_globins45", "ph_opt_T", "ph_opt_incT", "ph_opt_seed1", "ph_mx_pam30", "ph_mxfile", "ph_bad*", "ph_zero",
            "ph_dupdb", "ph_afa_query", "ph_sto_query", "jk_hbb_globins45", "jk_zero", "jk_dupdb", "jk_bad*"]


def poll(ask, wanted, times=400):
    """The first of the answers of `ask` that `wanted` takes, else the last."""
    for _ in range(times):
        answer = ask()
        if wanted(answer):
            break
        time.sleep(0.05)
    return answer


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


class Server:
    """A server while it lives; `folder` is where its sockets and temporary files are."""

    def __init__(self, folder, databases, options=(), cwd=None, prefix=(), device="cpu"):
        self.socket = os.path.join(folder, "socket")
        self.temporary = os.path.join(folder, "temporary")
        os.makedirs(self.temporary, exist_ok=True)
        words = [word for name, file in databases.items() for word in ("--db", f"{name}={file}")]
        self.process = subprocess.Popen(
            [*prefix, scenario.program, "serve", "--socket", self.socket, "--device", device, *words, *options], cwd=cwd,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": self.temporary, "HMMER_NCPU": "1"})
        atexit.register(self.process.kill)
        self.messages = [self.process.stderr.readline().decode()]
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        assert "ready" in self.messages[0], self.messages

    def read(self):
        for line in self.process.stderr:
            self.messages.append(line.decode())

    def ask(self, method, path, body=None):
        connection = Connection(self.socket)
        connection.request(method, path, body)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read()
        finally:
            connection.close()

    def metric(self, name):
        for line in self.ask("GET", "/metrics")[1].decode().split("\n"):
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise KeyError(name)

    def wait(self, name, value):
        found = poll(lambda: self.metric(name), lambda found: found == value)
        assert found == value, f"{name} is {found}, not {value}"

    def raw(self, timeout=60):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        connection.connect(self.socket)
        return connection

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.close()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self):
        self.reader.join()
        self.process.stderr.close()


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if b"built without a server" in scenario.run([scenario.program, "serve", "--db", "a=b"]).stderr:
            raise unittest.SkipTest("the program was built without Boost")
        cls.folder = tempfile.mkdtemp(prefix="hmmjit-serve-test-", dir="/tmp")  # the path of a socket has 107 bytes at most
        cls.data = os.path.join(cls.folder, "data")
        os.mkdir(cls.data)
        for name in ("globins4.hmm", "fn3.hmm", "Pkinase.hmm", "globins45.fa", "7LESS_DROME", "HBB_HUMAN"):
            shutil.copy(scenario.example_model(name, cls.folder), os.path.join(cls.data, name))
        records = scenario.emitted_targets([os.path.join(cls.data, "Pkinase.hmm")], 7, 40, 400)
        scenario.write_fasta(os.path.join(cls.data, "large.fa"), records * 40)
        scenario.write(os.path.join(cls.data, "slow.hmm"), scenario.read(os.path.join(cls.data, "Pkinase.hmm")) * 30)
        both = b"".join(scenario.read(os.path.join(cls.data, name)) for name in ("globins4.hmm", "fn3.hmm"))
        for name, text in (("both.hmm", both), ("cut.hmm", both[:-2000]), ("dna.fa", ">a\n" + "ACGT" * 40 + "\n"),
                           ("blast.pin", ""),
                           ("bytes.fa", b"".join(b">caf%c\nMKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ\n" % c for c in b"\xe8\xe9"))):
            scenario.write(os.path.join(cls.data, name), text)
        scenario.write(os.path.join(cls.data, "comment.hmm"), b"\n # globins\n" + scenario.read(os.path.join(cls.data, "globins4.hmm")))
        not_utf8 = os.fsdecode(b"\xff.fa")
        shutil.copy(os.path.join(cls.data, "dna.fa"), os.path.join(cls.data, not_utf8))
        scenario.ok(scenario.run([scenario.program, "db", "build", "-o", cls.data + "/g.hjdb", cls.data + "/globins45.fa"]))
        cls.databases = {name: name for name in ("globins45.fa", "7LESS_DROME", "g.hjdb", "large.fa", "both.hmm", "dna.fa")}
        cls.databases.update({"comment.hmm": "comment.hmm", "not_utf8": not_utf8})
        cls.server = Server(cls.folder, cls.databases, ["--queued", "40", "--max-request", "4M"], cwd=cls.data)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.end() == 0, cls.server.messages
        left = os.listdir(cls.server.temporary)
        assert left == [], left
        shutil.rmtree(cls.folder)

    def results(self, words, server, data=None):
        """Exit status, standard output and error, and all files written, without what a clock gives."""
        work = tempfile.mkdtemp(dir=self.folder)
        for name in os.listdir(self.data):
            os.symlink(os.path.join(self.data, name), os.path.join(work, name))
        os.mkdir(os.path.join(work, "by"))
        asked = ["--server", self.server.socket] if server else []
        done = subprocess.run([scenario.program, words[0], *asked, *words[1:]], cwd=work, input=data, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        files = {}
        for root, _, names in os.walk(work):
            for name in names:
                path = os.path.join(root, name)
                if not os.path.islink(path):
                    files[os.path.relpath(path, work)] = scenario.read(path)
        shutil.rmtree(work)
        kept = {name: CLOCKS.sub(b"", text.replace(work.encode(), b"WORK")).split(b"\n")
                for name, text in {**files, "stdout": done.stdout, "stderr": done.stderr}.items()}
        return done.returncode, kept

    def test_same_bytes(self):
        every = ("-o o -A a.sto --tblout t --domtblout d --pfamtblout p --tsv x.zst --target-tsv y.gz --json j "
                 "--a3m b.a3m --gff g.gff --fasta f.fa --verify 0")
        for line in (f"search {every} both.hmm globins45.fa", "search --tblout t -E 1e-9 --cpu 2 globins4.hmm g.hjdb",
                     "search -o by/{query}.out --tblout by/{target}-{query}.tbl both.hmm 7LESS_DROME",
                     "search --as hmmscan --domtblout d both.hmm 7LESS_DROME", "search --tblout - both.hmm globins45.fa",
                     "search --hmmer-banner globins4.hmm globins45.fa",
                     "phmmer --tblout t --mx BLOSUM45 HBB_HUMAN globins45.fa", "search --tformat uniprot fn3.hmm 7LESS_DROME",
                     "jackhmmer -N 3 --chkhmm c --chkali k -A a.sto HBB_HUMAN globins45.fa", "search fn3.hmm dna.fa",
                     "jackhmmer -N 2 --chkhmm x.gz --chkali {1}z --tblout 'a\nb' HBB_HUMAN globins45.fa",
                     "phmmer --tblout {query}.t bytes.fa globins45.fa",
                     "scan --tblout t --domtblout d both.hmm 7LESS_DROME",
                     "scan --tblout t comment.hmm HBB_HUMAN", "search --acc --seed 7 --max globins4.hmm globins45.fa"):
            with self.subTest(line):
                words = shlex.split(line)
                want, got = self.results(words, False), self.results(words, True)
                self.assertEqual(want[0], 0, want[1]["stderr"])
                self.assertEqual(want, got)
                self.assertGreater(len(want[1]["stdout"]) + len(want[1]), 3)

    def test_standard_input(self):
        model = scenario.read(os.path.join(self.data, "globins4.hmm"))
        words = ["search", "--tblout", "t", "-", "globins45.fa"]
        self.assertEqual(self.results(words, False, model), self.results(words, True, model))

    def test_same_errors(self):
        for line in ("search nosuch.hmm globins45.fa", "search cut.hmm globins45.fa", "search --bogus both.hmm globins45.fa",
                     "search -E 1 -T 5 both.hmm globins45.fa", "search globins45.fa globins45.fa", "search both.hmm",
                     "search --cut_ga --tblout t globins4.hmm globins45.fa", "search by globins45.fa",
                     "search --tblout t -o t both.hmm globins45.fa", "search --tblout no/t both.hmm globins45.fa",
                     "search --tblout /dev/full both.hmm globins45.fa",
                     "search --tblout globins45.fa both.hmm globins45.fa", "search --clans nosuch --gff g fn3.hmm 7LESS_DROME",
                     "phmmer --mxfile nosuch HBB_HUMAN globins45.fa", "phmmer both.hmm globins45.fa",
                     "scan --cut_ga both.hmm HBB_HUMAN", "jackhmmer HBB_HUMAN nosuch --tblout {bad}",
                     "search --tformat stockholm fn3.hmm 7LESS_DROME"):
            with self.subTest(line):
                words = shlex.split(line)
                want, got = self.results(words, False), self.results(words, True)
                self.assertNotEqual(want[0], 0)
                self.assertEqual(want, got)

    def test_an_output_that_is_the_query(self):
        status, files = self.results(shlex.split("phmmer --tblout {query} HBB_HUMAN globins45.fa"), True)
        self.assertEqual((status, b"this is the file of queries" in b"".join(files["stderr"])), (2, True), files["stderr"])

    def test_more_queries_than_open_files(self):
        queries = b"".join(b">q%d\nMVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHF\n" % n for n in range(40))
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            command = [scenario.program, "phmmer", "--server", self.server.socket, "-o", "{query}.out", "-", "globins45.fa"]
            done = subprocess.run(["bash", "-c", 'ulimit -n 24; exec "$@"', "bash", *command], cwd=work, input=queries,
                                  capture_output=True, timeout=120)
            self.assertEqual((done.returncode, len(os.listdir(work))), (0, 40), done.stderr)

    def test_what_a_server_refuses(self):
        for line, status, text in (
                ("search both.hmm nosuch", 3, "nosuch: the server has no such database; it has 7LESS_DROME, both.hmm"),
                ("search both.hmm both.hmm", 3, "these are profiles"), ("scan globins45.fa HBB_HUMAN", 3, "these are sequences"),
                ("search both.hmm globins45.fa 7LESS_DROME", 2, "several target files"),
                ("search --part 1/2 --part-file f both.hmm globins45.fa", 2, "--part does not go with --server"),
                ("phmmer blast globins45.fa", 2, "a server takes no BLAST database of queries"),
                ("search --device gpu both.hmm globins45.fa", 4, "the server has no GPU")):
            with self.subTest(line):
                got = self.results(shlex.split(line), True)
                self.assertEqual(got[0], status, got)
                self.assertIn(text, b"\n".join(got[1]["stderr"]).decode())
                self.assertEqual(sorted(got[1]), ["stderr", "stdout"])
        large, cut = (f"{self.data}/{name}" for name in ("large.fa", "cut.hmm"))
        half = str(3 * os.path.getsize(large))  # has room for one of two
        for line, status, text in (("", 2, "no database; add --db NAME=FILE"), ("--running 1001", 2, "range 0<n<=1000"),
                                   (f"--db a={large} --db a={cut}", 2, "another database has this name"),
                                   (f"--db a={cut}", 3, "cut.hmm"),
                                   (f"--mem {half} --db a={large} --db b={large}", 5, "do not fit in memory")):
            with self.subTest(line):
                done = scenario.run([scenario.program, "serve", "--device", "cpu", "--socket", self.folder + "/s", *line.split()],
                                    timeout=60)
                self.assertEqual((done.returncode, text in done.stderr.decode()), (status, True), done.stderr)
        done = subprocess.run(["env", "HMMJIT_CUDA_LIBRARY=/nowhere", scenario.program, "serve", "--device", "gpu", "--db", f"a={large}"],
                              capture_output=True, timeout=60)
        self.assertRegex(done.stderr, b"/nowhere|built without the CUDA headers")
        self.assertEqual((done.returncode, b"ready" in done.stderr), (4, False), done.stderr)
        nobody = scenario.run([scenario.program, "search", "--server", "/nonexistent", self.data + "/both.hmm", "x"])
        self.assertEqual((nobody.returncode, nobody.stderr.count(b"\n")), (5, 1), nobody.stderr)
        self.assertIn(b"/nonexistent: cannot reach a server", nobody.stderr)

    def test_curl_form(self):
        model = scenario.read(os.path.join(self.data, "both.hmm"))
        status, table = self.server.ask("POST", "/v1/search?db=globins45.fa&output=tblout&E=1e-5&noali", model)
        want = self.results(shlex.split("search --noali -E 1e-5 --tblout t both.hmm globins45.fa"), False)[1]["t"]
        lines = [line for line in table.split(b"\n") if line and not line.startswith(b"#")]
        self.assertEqual((status, lines), (200, [line for line in want if line and not line.startswith(b"#")]))
        status, page = self.server.ask("POST", "/v1/search?db=globins45.fa&output=page", model)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            result = folder + "/r.json"
            scenario.run([scenario.program, "search", "-o", "/dev/null", "--json", result, self.data + "/both.hmm",
                          self.data + "/globins45.fa"])
            scenario.run([scenario.program, "report", result])
            pages = [re.findall(rb"[A-Za-z0-9+/=]{200,}", text) for text in (page, scenario.read(result + ".html"))]
        self.assertEqual((status, len(pages[0]), pages[0]), (200, 2, pages[1]))  # all but the date
        for path, status, text in (("/v1/search?db=nosuch", 400, b"no such database"), ("/v1/search?db=globins45.fa&E=x", 400, b"-E"),
                                   ("/v1/search?db=globins45.fa&clans=/etc/passwd&gff=x", 400, b"cannot be opened"),
                                   ("/v1/search?db=globins45.fa&cut-file=/etc/passwd", 400, b"cannot be opened"),
                                   ("/v1/phmmer?db=globins45.fa&mxfile=/etc/passwd", 400, b"cannot be opened"),
                                   ("/v1/search?db=globins45.fa&part-file=/tmp/x", 400, b"--part-file does not go with"),
                                   ("/v1/search?db=globins45.fa&part=1/2", 400, b"--part does not go with"),
                                   ("/v1/search?db=globins45.fa&trace=/tmp/x", 400, b"--trace does not go with"),
                                   ("/v1/search?db=/etc/passwd", 400, b"no such database"),
                                   ("/v1/search?db=globins45.fa&output=tbl", 400, b"no output --tbl; write its full name"),
                                   ("/v1/search?db=globins45.fa&output=target_tsv", 400, b"no output --target_tsv"),
                                   ("/v1/build?db=globins45.fa", 404, b"build"), ("/nosuch", 404, b"hmmjit")):
            with self.subTest(path):
                answer = self.server.ask("POST", path, model)
                self.assertEqual(answer[0], status, answer)
                self.assertIn(text, answer[1])
        self.assertNotIn(b'command=""', self.server.ask("GET", "/metrics")[1])
        health = json.loads(self.server.ask("GET", "/health")[1])
        self.assertEqual((health["status"], health["databases"]["both.hmm"]["holds"]), ("ready", "profiles"))

    def test_malformed_and_oversized(self):
        for text in (b"", b"GET", b"\0" * 300, b"POST /v1/run HTTP/1.1\r\nContent-Length: 9\r\n\r\nnot json\n",
                     b"POST /v1/run HTTP/1.1\r\nContent-Length: 19\r\n\r\n{\"command\":[1,2,3]}",
                     b"POST /v1/run HTTP/1.1\r\nContent-Length: 33\r\n\r\n{\"input\":\"../../x\",\"bytes\":1}\nx\n\n\n",
                     b"POST /v1/run HTTP/1.1\r\nContent-Length: 25\r\n\r\n{\"input\":\"query\",\"bytes\":9}"):
            with self.subTest(text):
                connection = self.server.raw()
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                self.assertIn(connection.recv(100)[:12], (b"", b"HTTP/1.1 400", b"HTTP/1.1 404"))
                connection.close()
        endless = self.server.raw()  # the line before a chunk
        endless.sendall(b"POST /v1/search?db=globins45.fa HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;a=" + b"a" * (1 << 19))
        self.assertEqual(endless.recv(12), b"HTTP/1.1 413")
        endless.close()
        command = b"\0" * (2 << 20)
        answer = self.server.ask("POST", "/v1/run", b'{"command":"search","bytes":%d}\n' % len(command) + command)
        self.assertEqual(answer, (400, b"the command is too long\n"))
        self.assertEqual(self.server.ask("POST", "/v1/run", b'{"input":"query"}\n' * 2), (400, b"query: an input comes twice\n"))
        status, text = self.server.ask("POST", "/v1/search?db=globins45.fa", b"x" * (5 << 20))
        self.assertEqual((status, b"too large" in text), (413, True))
        bomb = gzip.compress(b">a\n" + b"A" * (5 << 20) + b"\n")
        status, text = self.server.ask("POST", "/v1/phmmer?db=globins45.fa", bomb)
        self.assertEqual((status, b"too large when decompressed" in text), (400, True), text)
        status, text = self.server.ask("POST", "/v1/phmmer?db=globins45.fa", b">long\n" + b"ACDEFGHIKL" * 10001)
        self.assertEqual((status, b"long: a query of 100010 residues" in text), (400, True), text)
        large = scenario.write(os.path.join(self.folder, "large.hmm"), b"x" * (5 << 20))
        done = scenario.run([scenario.program, "search", "--server", self.server.socket, large, "globins45.fa"])
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"the request is too large", done.stderr)

    def slow(self, server, *options):
        """A client whose query takes more than half a minute, unless it is cancelled."""
        return subprocess.Popen([scenario.program, "search", "--server", server.socket, "--max", "--cpu", "1", *options,
                                 self.data + "/slow.hmm", "large.fa"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_a_client_that_is_killed(self):
        self.server.wait("hmmjit_running", 0)  # other tests break off
        client = self.slow(self.server)
        self.server.wait("hmmjit_running", 1)
        client.kill()
        client.communicate()
        self.server.wait("hmmjit_running", 0)
        self.assertGreater(self.server.metric('hmmjit_queries_total{command="search",exit="130"}'), 0)
        connection = self.server.raw()  # one that breaks off in its request
        connection.sendall(b"POST /v1/search?db=globins45.fa HTTP/1.1\r\nContent-Length: 1000\r\n\r\nHMMER3/f")
        connection.close()

    def test_many_clients_and_a_slow_reader(self):
        words = shlex.split("search --tblout t --domtblout d both.hmm globins45.fa")
        want = self.results(words, False)
        reader = self.server.raw()  # never reads
        model = scenario.read(os.path.join(self.data, "Pkinase.hmm"))
        reader.sendall(b"POST /v1/search?db=large.fa&E=1e-3 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(model) + model)
        got = [None] * 8
        threads = [threading.Thread(target=lambda i=i: got.__setitem__(i, [self.results(words, True) for _ in range(3)]))
                   for i in range(len(got))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for results in got:
            self.assertEqual(results, [want] * 3)
        reader.close()

    def test_bounds(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            server = Server(folder, {"large.fa": self.data + "/large.fa"}, ["--running", "1", "--queued", "1"])
            clients = [self.slow(server)]
            server.wait("hmmjit_running", 1)
            clients.append(self.slow(server))
            server.wait("hmmjit_queued", 1)
            refused = self.slow(server)
            messages = refused.communicate()[1]
            self.assertEqual((refused.returncode, b"1 queries wait; try again later" in messages), (5, True), messages)
            clients[1].kill()  # one that is gone does not wait
            clients.pop().communicate()
            self.assertEqual(poll(lambda: server.ask("POST", "/v1/search?db=nosuch", b"")[0], lambda status: status != 503), 400)
            clients.append(self.slow(server))
            server.wait("hmmjit_queued", 1)
            for client in clients:
                server.wait("hmmjit_running", 1)
                client.kill()
                client.communicate()
            self.assertEqual(server.end(), 0)
            server = Server(folder, {"large.fa": self.data + "/large.fa"}, ["--time-limit", "1"])
            late = self.slow(server)
            messages = late.communicate()[1]
            self.assertEqual((late.returncode, b"longer than 1 s" in messages), (5, True), messages)
            self.assertEqual(server.end(), 0)

    def test_a_machine_without_a_gpu(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            server = Server(folder, {"g": self.data + "/globins45.fa"}, prefix=["env", "HMMJIT_CUDA_LIBRARY=/nowhere"], device="auto")
            state = poll(lambda: json.loads(server.ask("GET", "/health")[1])["device"], lambda state: state != "starting")
            self.assertEqual(state, "none")
            self.assertIn(b'hmmjit_device{state="none"} 1\n', server.ask("GET", "/metrics")[1])
            self.assertEqual(server.end(), 0)

    def test_end_and_reload(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            database = os.path.join(folder, "db.fa")
            shutil.copy(self.data + "/large.fa", database)
            server = Server(folder, {"db": database})
            ask = [scenario.program, "search", "--server", server.socket, "--noali", self.data + "/globins4.hmm", "db"]
            self.assertIn(b" 17600  (", scenario.run(ask).stdout)
            slow = subprocess.Popen([*ask[:-2], "--max", "--cpu", "1", self.data + "/Pkinase.hmm", "db"], stdout=subprocess.PIPE)
            server.wait("hmmjit_running", 1)
            shutil.copy(self.data + "/globins45.fa", database + ".new")
            os.rename(database + ".new", database)
            server.process.send_signal(signal.SIGHUP)
            self.wait_for_message(server, "opened again")
            self.assertIn(b" 45  (", scenario.run(ask).stdout)
            os.remove(database)  # it cannot be opened again
            for _ in range(3):
                server.process.send_signal(signal.SIGHUP)
            server.process.send_signal(signal.SIGTERM)
            refused = poll(lambda: scenario.run(ask), lambda done: done.returncode != 0)
            self.assertEqual((refused.returncode, b"the server is ending" in refused.stderr), (5, True), refused.stderr)
            self.assertIn(b'"ending"', server.ask("GET", "/health")[1])
            report = slow.communicate()[0]  # the old targets, to the end
            self.assertIn(b" 17600  (", report)
            self.assertEqual((slow.returncode, server.process.wait(60)), (0, 0))
            self.assertFalse(os.path.exists(server.socket))
            server.close()

    def wait_for_message(self, server, text):
        self.assertTrue(poll(lambda: any(text in line for line in server.messages), bool), server.messages)

    def test_only_what_can_be_used_is_opened_again(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            def put(source, name):
                shutil.copy(os.path.join(self.data, source), folder + "/new")
                os.rename(folder + "/new", folder + "/" + name)

            def blast(source):
                scenario.ok(scenario.run(["makeblastdb", "-dbtype", "prot", "-out", folder + "/b", "-title", "b", "-in",
                                          os.path.join(self.data, source)]))
            put("globins4.hmm", "a.hmm")
            put("globins45.fa", "c.fa")
            databases = {"a": folder + "/a.hmm", "c": folder + "/c.fa"}
            if shutil.which("makeblastdb"):
                blast("globins45.fa")
                databases["b"] = folder + "/b"
            server = Server(folder, databases)
            put("cut.hmm", "a.hmm")
            put("both.hmm", "c.fa")
            if "b" in databases:
                blast("HBB_HUMAN")
            server.process.send_signal(signal.SIGHUP)
            self.wait_for_message(server, "c: ")
            for line, name, end in zip(server.messages[1:], sorted(databases), ("stays\n", "again\n", "profiles now; the old one stays\n")
                                       if "b" in databases else ("stays\n", "profiles now; the old one stays\n")):
                self.assertTrue(line.startswith(f"hmmjit serve: {name}: ") and line.endswith(end), server.messages)
            model, sequence = (scenario.read(os.path.join(self.data, name)) for name in ("globins4.hmm", "HBB_HUMAN"))
            self.assertEqual(server.ask("POST", "/v1/scan?db=a", sequence)[0], 200)
            for name, targets in (("c", b" 45  ("), ("b", b" 1  (")):
                if name in databases:
                    self.assertIn(targets, server.ask("POST", "/v1/search?db=" + name, model)[1])
            self.assertEqual(server.end(), 0)

    def test_connections_beyond_the_bound_and_at_the_end(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            server = Server(folder, {"g": self.data + "/globins45.fa"}, ["--running", "1", "--queued", "0"])
            silent = [server.raw() for _ in range(17)]
            self.assertEqual(server.ask("POST", "/v1/search?db=g", b"x"), (503, b"too many queries; try again later\n"))
            for connection in silent[1:]:
                connection.close()
            status, text = poll(lambda: server.ask("GET", "/metrics"), lambda answer: answer[0] == 200)
            self.assertEqual((status, b"hmmjit_refused_total 0" in text), (200, False), text)
            server.process.send_signal(signal.SIGTERM)
            self.wait_for_message(server, "ending")
            with self.assertRaises(ConnectionError):  # it waits for silent[0], not for others
                server.ask("GET", "/health")
            silent[0].close()
            self.assertEqual(server.process.wait(60), 0)
            server.close()

    def test_signals_while_files_are_opened(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            os.mkfifo(folder + "/f")
            process = subprocess.Popen([scenario.program, "serve", "--device", "cpu", "--socket", folder + "/s", "--db", f"f={folder}/f"],
                                       stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
            with open(folder + "/f", "wb"):
                process.terminate()
                self.assertEqual(process.wait(60), -signal.SIGTERM)
            self.assertEqual(os.listdir(folder), ["f"])

    def test_a_cleaner_of_temporary_files(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            server = Server(folder, {"g": self.data + "/globins45.fa"})
            model = scenario.read(os.path.join(self.data, "globins4.hmm"))
            own = os.path.join(server.temporary, *os.listdir(server.temporary))
            with self.assertRaises(BlockingIOError):
                descriptor = os.open(own, os.O_RDONLY)
                self.addCleanup(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(own)
            self.assertEqual(server.ask("POST", "/v1/search?db=g", model)[0], 200)
            shutil.rmtree(server.temporary)
            self.assertEqual(server.ask("POST", "/v1/search?db=g", model)[0], 507)
            os.mkdir(server.temporary)
            self.assertEqual(server.ask("POST", "/v1/search?db=g", model)[0], 200)
            self.assertEqual((server.end(), os.listdir(server.temporary)), (0, []))

    def test_sockets_of_others(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(folder + "/other")
            before = os.stat(folder + "/other")
            done = scenario.run([scenario.program, "serve", "--device", "cpu", "--socket", folder + "/other", "--db",
                                 f"g={self.data}/globins45.fa"], timeout=60)
            self.assertEqual((done.returncode, b"cannot listen" in done.stderr), (5, True), done.stderr)
            self.assertEqual(os.stat(folder + "/other"), before)
            first = Server(folder, {"g": self.data + "/globins45.fa"})
            os.remove(first.socket)
            second = Server(folder, {"g": self.data + "/globins45.fa"})
            self.assertEqual(first.end(), 0)
            self.assertEqual(second.ask("GET", "/health")[0], 200)
            self.assertEqual(second.end(), 0)

    def test_a_server_that_is_killed(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            server = Server(folder, {"large.fa": self.data + "/large.fa"})
            client = self.slow(server, "--tblout", folder + "/t")
            server.wait("hmmjit_running", 1)
            server.kill()
            os.mkdir(server.temporary + "/hmmjit-serve-backup")  # a user's
            messages = client.communicate()[1]
            self.assertEqual((client.returncode, b"the server ended before its answer" in messages), (5, True), messages)
            self.assertFalse(os.path.exists(folder + "/t"))
            self.assertEqual(len(os.listdir(server.temporary)), 2)
            again = Server(folder, {"large.fa": self.data + "/large.fa"})  # where the dead one has left its socket
            self.assertEqual(len(os.listdir(again.temporary)), 2)
            self.assertTrue(os.path.isdir(again.temporary + "/hmmjit-serve-backup"))
            self.assertEqual(again.end(), 0)

    def test_port(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            token = scenario.write(os.path.join(folder, "token"), "secret-word\n")
            with socket.socket() as held:  # nobody else is given its port, at which it does not listen
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # which the server sets, too
                held.bind(("127.0.0.1", 0))
                port = held.getsockname()[1]
                server = Server(folder, {"g": self.data + "/globins45.fa"}, ["--listen", f"127.0.0.1:{port}", "--token-file", token])
            answers = []
            for given in ("", "Bearer other", "bearer  secret-word"):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", "/health", headers={"Authorization": given})
                answers.append(connection.getresponse().status)
                connection.close()
            self.assertEqual(answers, [401, 401, 200])
            self.assertEqual(server.end(), 0)
            with socket.create_server(("127.0.0.1", 0)) as given:  # by systemd
                done = subprocess.run(
                    ["bash", "-c", f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&{given.fileno()}', "bash", scenario.program,
                     "serve", "--device", "cpu", "--db", f"g={self.data}/globins45.fa"],
                    pass_fds=[given.fileno()], capture_output=True, timeout=60)
            self.assertEqual((done.returncode, b"needs a token" in done.stderr), (2, True), done.stderr)

    @unittest.skipIf(scenario.shared_folder() is None, "no recorded runs (shared/data)")
    def test_recorded_runs(self):
        shared = scenario.shared_folder()
        work = os.path.join(self.folder, "replayed")
        for script, cases, patterns, each in (
                ("replay_expected.py", "expected", SEARCHES, {"hmmsearch": ["--program", "search"]}),
                ("replay_programs.py", "programs/expected", PROGRAMS,
                 {"phmmer": ["--program-phmmer", "phmmer"], "jackhmmer": ["--program-jackhmmer", "jackhmmer"],
                  "hmmscan": ["--program-hmmscan", "scan"]})):
            with self.subTest(script):
                if "HMMJIT_TEST_ALL" in os.environ:
                    patterns = ["[!s]*", "sc_[!b]*"]  # hmmjit scan reads a file that is not pressed
                self.replay(shared, script, os.path.join(shared, "data", cases, "commands.tsv"), patterns, each, work + script)

    def replay(self, shared, script, commands, patterns, programs, work):
        databases = {}
        with open(commands) as file:
            lines = [line.rstrip("\n").split("\t", 1) for line in file][1:]
        for case, command in lines:
            words = shlex.split(command.split(" > ")[0])
            inputs = [word for word in words if word.startswith(("hmm/", "seq/", "edge/", "query/"))]
            if words[0] not in programs or not any(fnmatch.fnmatch(case, pattern) for pattern in patterns):
                continue
            name = inputs[-2 if words[0] == "hmmscan" else -1]
            root = os.path.join(shared, "data", "programs", "expected") if name.startswith("query/") \
                else os.path.join(shared, "data")
            plain = os.path.join(root, name)
            if not os.path.exists(plain):
                if not os.path.exists(plain + ".gz"):
                    continue
                plain = os.path.join(work, "in", name)
                if not os.path.exists(plain):
                    os.makedirs(os.path.dirname(plain), exist_ok=True)
                    with gzip.open(os.path.join(root, name) + ".gz") as source, open(plain, "wb") as sink:
                        shutil.copyfileobj(source, sink)
            databases[name if "programs" in script else plain] = plain
        os.makedirs(work, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            server = Server(folder, databases)
            words = []
            for option, command in programs.values():
                words += [option, shlex.join([scenario.program, command, "--server", server.socket])]
            scenario.replay(script, "--data", os.path.join(shared, "data"), "--work", work, *words, only=patterns)
            self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    scenario.main()
