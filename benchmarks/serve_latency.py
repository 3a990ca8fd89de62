#!/usr/bin/env python3
"""Latency, throughput and memory of hmmjit serve.

usage: serve_latency.py --program PATH --db FILE [--small-db FILE] --models FILE --sequence FILE [options]

Starts a server and measures, from the request to the last byte of the answer:
  one      a model of the size closest to --positions against the database, --repeat times
  small    the same against the small database; with one thread, what it takes beyond the seconds of its filters and of scoring, and
           what the program takes with --server
  jackhmmer  the sequence, -N 1, a tenth as often
  mixed    100 models of the file, 8 at a time, and the same in one run of the program that has its kernels
  memory   of host and device over --queries further queries
Every answer must equal the first one to the same query; else the program ends with status 1. JSON lines; --svg draws the times.
"""
import argparse
import concurrent.futures
import hashlib
import http.client
import json
import math
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
TIMES = {}  # of each row, sorted
COLOURS = ("#1b62b5", "#c4541c", "#2c8a4b", "#7a4fa3", "#555")


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def post(server, path, body):
    """Seconds until the last byte, and the answer."""
    begun = time.perf_counter()
    connection = Connection(server)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    text = answer.read()
    seconds = time.perf_counter() - begun
    connection.close()
    if answer.status != 200:
        sys.exit(f"{path}: {answer.status}: {text.decode()}")
    return seconds, text


def ask(server, path, body):
    """Seconds until the last byte, and the number of hits."""
    seconds, text = post(server, path + "&output=tblout", body)
    rows = [line for line in text.split(b"\n") if line and not line.startswith(b"#")]
    digest = hashlib.sha256(b"\n".join(rows)).digest()
    if DIGESTS.setdefault((path, body), digest) != digest:
        sys.exit(f"{path}: two answers to one query differ")
    return seconds, len(rows)


def show(name, **fields):
    print(json.dumps({"row": name, **fields}), flush=True)


def show_times(name, times, **fields):
    times = TIMES[name] = sorted(times)
    show(name, queries=len(times), **fields, median_ms=round(statistics.median(times) * 1e3, 1),
         p90_ms=round(times[int(len(times) * .9)] * 1e3, 1), p99_ms=round(times[int(len(times) * .99)] * 1e3, 1))


def latencies(name, server, path, body, repeat):
    first, hits = ask(server, path, body)
    show_times(name, [ask(server, path, body)[0] for _ in range(repeat)], hits=hits, first_ms=round(first * 1e3, 1))


def beyond_cells(server, path, body):
    """Seconds of a query outside its filters and scoring, from its --stats."""
    seconds, text = post(server, path + "&output=stats", body)
    stages = json.loads(text)["stages"]
    return seconds - sum(stages[stage]["seconds"] for stage in ("ssv", "msv", "bias", "viterbi", "scoring"))


def by_program(args, server, folder, body):
    file = folder + "/query.hmm"
    with open(file, "wb") as model:
        model.write(body)
    begun = time.perf_counter()
    subprocess.run([args.program, "search", "--server", server, "--cpu", "1", "-o", "/dev/null", "--tblout", folder + "/table",
                    file, "small"], check=True)
    return time.perf_counter() - begun


def picture():
    """The share of the queries of each row that are answered within a time, as SVG."""
    low = math.floor(math.log10(1e3 * min(times[0] for times in TIMES.values())))
    high = math.ceil(math.log10(1e3 * max(times[-1] for times in TIMES.values())))
    x = lambda milliseconds: 50 + 440 * (math.log10(milliseconds) - low) / (high - low)
    y = lambda percent: 250 - 2.3 * percent
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 275" font-family="system-ui, sans-serif" font-size="12">',
             '<rect width="640" height="275" fill="#fff"/>', '<path d="M50 20V250H490" fill="none" stroke="#888"/>']
    lines += [f'<text x="{x(10 ** power):.0f}" y="266" text-anchor="middle">{10 ** power:g} ms</text>' for power in range(low, high + 1)]
    lines += [f'<text x="44" y="{y(percent) + 4:.0f}" text-anchor="end">{percent} %</text>' for percent in (0, 50, 90, 100)]
    for row, (name, times) in enumerate(TIMES.items()):
        colour = COLOURS[row % len(COLOURS)]
        points = (f"{x(1e3 * times[(len(times) - 1) * percent // 100]):.1f},{y(percent):.1f}" for percent in range(101))
        lines += [f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
                  f'<text x="500" y="{40 + 20 * row}" fill="{colour}">{name}</text>']
    return "\n".join(lines + ["</svg>", ""])


def host_memory(process):
    with open(f"/proc/{process}/status") as status:
        text = status.read()
    return [int(re.search(name + r":\s+(\d+)", text)[1]) // 1024 for name in ("VmRSS", "VmHWM")]


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
    parser.add_argument("--query-options", default="", help="of the rows one, small and memory, as &device=gpu")
    parser.add_argument("--svg")
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
            latencies("one", path, "/v1/search?db=large" + args.query_options, one, args.repeat)
            if args.small_db:
                latencies("small", path, "/v1/search?db=small" + args.query_options, one, args.repeat)
                show_times("beyond cells", [beyond_cells(path, "/v1/search?db=small&cpu=1", one) for _ in range(args.repeat)])
                show_times("program", [by_program(args, path, folder, one) for _ in range(args.repeat)])
            latencies("jackhmmer", path, "/v1/jackhmmer?db=large&N=1", sequence, max(args.repeat // 10, 1))
            if args.svg:
                with open(args.svg, "w") as file:
                    file.write(picture())
            for kind in ("first", "again"):
                begun = time.perf_counter()
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    list(pool.map(lambda model: ask(path, "/v1/search?db=large", model), mixed))
                show("mixed", kind=kind, queries=len(mixed), seconds=round(time.perf_counter() - begun, 3))
            for at in range(args.queries + 1):
                if at % max(args.queries // 10, 1) == 0:
                    resident, most = host_memory(server.pid)
                    show("memory", queries=at, host_mb=resident, most_host_mb=most, device_mb=device_memory())
                ask(path, "/v1/search?db=" + ("small" if args.small_db else "large") + args.query_options, mixed[at % len(mixed)])
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
