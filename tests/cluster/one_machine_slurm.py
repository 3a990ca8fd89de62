"""A real Slurm on this machine: a controller and several virtual nodes.

Everything lies in one folder and listens on the loopback interface: daemons, their keys, logs and
state. Nothing of it needs systemd, control groups or accounting, and it ends with the object. Needs
root and the packages slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins and munge.
"""
import os
import random
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "sinfo", "scontrol", "scancel")
SYSTEM_CONFIGURATION = "/etc/slurm/slurm.conf"

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
CredType=cred/munge
# A job that goes back into the queue waits until its credential has expired: 5 s at least.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/pid/slurmctld
SlurmdPidFile={folder}/pid/slurmd.%n
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
MinJobAge=600
KillWait=5
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=1 RealMemory=4000
PartitionName=main Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why this machine cannot run it, or None."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return "not installed: " + ", ".join(absent)
    if os.geteuid() != 0:
        return "the daemons of Slurm need root"
    if not os.path.ismount("/sys/fs/cgroup"):
        return "slurmd needs /sys/fs/cgroup"
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        return "slurmctld needs the address of this host: add its name to /etc/hosts"
    return None


def free_ports(count):
    while True:
        first = random.randrange(20000, 30000)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


class Slurm:
    def __init__(self, folder, nodes=4):
        self.folder, self.nodes = folder, nodes
        for name in ("munge", "state", "log", "pid"):
            os.makedirs(os.path.join(folder, name))
        for node in range(1, nodes + 1):
            os.makedirs(os.path.join(folder, "spool", f"n{node}"))
        # munged refuses a socket where others could replace it.
        os.chmod(folder, 0o755)
        os.chmod(os.path.join(folder, "munge"), 0o700)
        port = free_ports(nodes + 1)
        self.configuration = os.path.join(folder, "slurm.conf")
        with open(self.configuration, "w") as file:
            file.write(CONFIGURATION.format(
                folder=folder, nodes=nodes, host=socket.gethostname().split(".")[0], port=port,
                first=port + 1, last=port + nodes))
        self.environment = dict(os.environ, SLURM_CONF=self.configuration)
        # Snakemake's executor takes all SLURM_* variables from its jobs: they find this one.
        left = os.path.islink(SYSTEM_CONFIGURATION) and "/hmmjit-slurm-" in os.readlink(SYSTEM_CONFIGURATION)  # by a killed run
        self.linked = left or not os.path.lexists(SYSTEM_CONFIGURATION)
        if self.linked:
            os.makedirs(os.path.dirname(SYSTEM_CONFIGURATION), exist_ok=True)
            os.symlink(self.configuration, self.configuration + ".link")
            os.replace(self.configuration + ".link", SYSTEM_CONFIGURATION)
        self.pids = []
        try:
            self.start()
        except Exception:
            self.stop()
            raise

    def start(self):
        munge = os.path.join(self.folder, "munge")
        with open(os.open(os.path.join(munge, "key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as key:
            key.write(os.urandom(128))
        self.daemon(["munged", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                     f"--pid-file={munge}/pid", f"--log-file={self.folder}/log/munged",
                     f"--seed-file={munge}/seed"], os.path.join(munge, "pid"))
        self.daemon(["slurmctld", "-c"], os.path.join(self.folder, "pid", "slurmctld"))
        for node in range(1, self.nodes + 1):
            self.daemon(["slurmd", "-N", f"n{node}"],
                        os.path.join(self.folder, "pid", f"slurmd.n{node}"))
        for _ in range(300):
            idle = self.call(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], check=False)
            if len(set(idle.split())) == self.nodes:
                return
            time.sleep(0.2)
        raise RuntimeError("the nodes of Slurm did not become idle")

    def daemon(self, command, pid_file):
        # A daemon goes to the background by itself, when it is ready or has said why not.
        with open(os.path.join(self.folder, "log", "start"), "a") as log:
            subprocess.run(command, env=self.environment, stdout=log, stderr=log, check=True,
                           timeout=60)
        for _ in range(100):
            try:
                with open(pid_file) as file:
                    self.pids.append(int(file.read()))
                return
            except (FileNotFoundError, ValueError):
                time.sleep(0.1)
        raise RuntimeError(f"{command[0]} wrote no {pid_file}")

    def call(self, command, check=True, **keywords):
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, text=True, **keywords)
        if check and done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr}")
        return done.stdout

    def wait(self, jobs, seconds):
        """Until none of the jobs is in the queue any more; jobs that can never start count."""
        deadline = time.time() + seconds
        while True:
            rows = self.call(["squeue", "-h", "-j", ",".join(jobs), "-o", "%T %r"], check=False)
            left = [row for row in rows.splitlines()
                    if row.split()[0] in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
                    and "DependencyNeverSatisfied" not in row]
            if not left:
                return
            if time.time() > deadline:
                raise RuntimeError(f"jobs are still {left}")
            time.sleep(0.2)

    def stop(self):
        if self.pids:
            self.call(["scancel", "--full", "--signal=KILL", "--state=RUNNING"], check=False)
        for pid in reversed(self.pids):
            try:
                os.kill(pid, signal.SIGTERM)
                for _ in range(50):
                    time.sleep(0.1)
                    os.kill(pid, 0)
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.linked and os.path.islink(SYSTEM_CONFIGURATION) \
                and os.readlink(SYSTEM_CONFIGURATION) == self.configuration:
            os.remove(SYSTEM_CONFIGURATION)
