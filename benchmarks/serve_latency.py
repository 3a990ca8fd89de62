#!/usr/bin/env python3
"""Latency, throughput and memory of hmmjit serve.

usage: serve_latency.py --program PATH --db FILE [--small-db FILE] --models FILE --sequence FILE [options]

Starts a server and measures, from the request to the last byte of the answer:
  one      a model of the size closest to --positions against the database, --repeat times
  small    the same against the small database
  jackhmmer  the sequence, -N 1, a tenth as often
  mixed    100 models of the file, 8 at a time, and the same in one run of the program that has its kernels
  memory   of host and device over --queries further queries
Every answer must equal the first one to the same query; else the program ends with status 1. JSON lines.
"""
import argparse
import concurrent.futures
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

DIGESTS = {}


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(server, path, body):
    """Seconds until the last byte, and the number of hits."""
    begun = time.perf_counter()
    connection = Connection(server)
    connection.request("POST", path + "&output=tblout", body)
    answer = connection.getresponse()
    text = answer.read()
    seconds = time.perf_counter() - begun
    connection.close()
    if answer.status != 200:
        sys.exit(f"{path}: {answer.status}: {text.decode()}")
    rows = [line for line in text.split(b"\n") if line and not line.startswith(b"#")]
    digest = hashlib.sha256(b"\n".join(rows)).digest()
    if DIGESTS.setdefault((path, body), digest) != digest:
        sys.exit(f"{path}: two answers to one query differ")
    return seconds, len(rows)


def show(name, **fields):
    print(json.dumps({"row": name, **fields}), flush=True)


def latencies(name, server, path, body, repeat):
    first, hits = ask(server, path, body)
    times = sorted(ask(server, path, body)[0] for _ in range(repeat))
    show(name, queries=repeat, hits=hits, first_ms=round(first * 1e3, 1), median_ms=round(statistics.median(times) * 1e3, 1),
         p90_ms=round(times[int(repeat * .9)] * 1e3, 1), p99_ms=round(times[int(repeat * .99)] * 1e3, 1))


def host_memory(process):
    with open(f"/proc/{process}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) // 1024


def device_memory():
    if not shutil.which("nvidia-smi"):
        return None
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], stdout=subprocess.PIPE)
    return int(done.stdout.split()[0]) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--db", required=True)
    parser.add_argument("--small-db")
    parser.add_argument("--models", required=True)
    parser.add_argument("--sequence", required=True)
    parser.add_argument("--positions", type=int, default=250)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeat", type=int, default=200)
    parser.add_argument("--queries", type=int, default=1000)
    args = parser.parse_args()
    with open(args.models, "rb") as file:
        models = [part + b"//\n" for part in file.read().split(b"//\n")[:-1]]
    with open(args.sequence, "rb") as file:
        sequence = file.read()
    one = min(models, key=lambda model: abs(int(re.search(rb"\nLENG +(\d+)", model)[1]) - args.positions))
    mixed = models[:100]
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/socket"
        databases = ["--db", "large=" + args.db] + (["--db", "small=" + args.small_db] if args.small_db else [])
        server = subprocess.Popen([args.program, "serve", *databases, "--socket", path, "--device", args.device,
                                   "--running", "8"], env={**os.environ, "TMPDIR": folder})
        try:
            while not os.path.exists(path):
                if server.poll() is not None:
                    sys.exit("the server ended")
                time.sleep(0.1)
            latencies("one", path, "/v1/search?db=large", one, args.repeat)
            if args.small_db:
                latencies("small", path, "/v1/search?db=small", one, args.repeat)
            latencies("jackhmmer", path, "/v1/jackhmmer?db=large&N=1", sequence, max(args.repeat // 10, 1))
            for kind in ("first", "again"):
                begun = time.perf_counter()
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    list(pool.map(lambda model: ask(path, "/v1/search?db=large", model), mixed))
                show("mixed", kind=kind, queries=len(mixed), seconds=round(time.perf_counter() - begun, 3))
            for at in range(args.queries + 1):
                if at % max(args.queries // 10, 1) == 0:
                    show("memory", queries=at, host_mb=host_memory(server.pid), device_mb=device_memory())
                ask(path, "/v1/search?db=" + ("small" if args.small_db else "large"), mixed[at % len(mixed)])
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
        with open(folder + "/mixed.hmm", "wb") as file:
            file.write(b"".join(mixed))
        for _ in range(2):
            begun = time.perf_counter()
            subprocess.run([args.program, "search", "--quiet", "--device", args.device, "-o", "/dev/null", "--tblout",
                            folder + "/batch", folder + "/mixed.hmm", args.db], check=True)
            show("batch", queries=len(mixed), seconds=round(time.perf_counter() - begun, 3))


if __name__ == "__main__":
    main()
