# SPDX-License-Identifier: Apache-2.0
"""What the figures are of: the processor, its limits, and the versions of everybody."""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import time

import numpy as np

import peers
import works
from processes import BUILD, HERE, run_program


def generation(vendor, family, model):
    """What people call a processor, where a virtual machine's model name leaves it out."""
    if vendor == "AuthenticAMD" and family == 25:
        return "Zen 4" if model >> 4 in (1, 6, 7, 10) else "Zen 3"
    return {("AuthenticAMD", 23): "Zen", ("AuthenticAMD", 26): "Zen 5"}.get((vendor, family), "")


def description():
    """What the figures are of: the processor, its caches and the versions of everything."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = lambda key: next((m[1].strip() for m in [re.search(rf"^{key}\s*:(.*)$", text, re.M)] if m), "unknown")
    flags = found("flags").split()
    numbers = [int(n) for n in (found("cpu family"), found("model")) if n.isdigit()]
    named = generation(found("vendor_id"), *numbers) if len(numbers) == 2 else ""
    wanted = ("avx2", "fma", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16")
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    head = subprocess.run(
        ["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "processor": f"{found('model name')} ({named})" if named else found("model name"),
        "family": found("cpu family"),
        "model": found("model"),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_sets": [f for f in wanted if f in flags],
        "system": f"{platform.system()} {platform.release()}",
        "compiler": compiler,
        "commit": head.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
    }


def target():
    """The instruction set that our code chooses, here and now: REGROUP_TARGET's where it is set."""
    done = subprocess.run([BUILD / "bin" / "bench_limits", "target"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise works.NoSuchWork(done.stderr.strip() or f"bench_limits ended with {done.returncode}")
    return done.stdout.strip()


def versions():
    """Peer -> version, of Python's; the reason where one is not there."""
    from importlib import metadata

    found = {"Python": platform.python_version()}
    for peer in peers.ALL.values():
        try:
            found[peer.package] = metadata.version(peer.package)
        except metadata.PackageNotFoundError:
            found[peer.package] = "not installed"
    absences = BUILD.parent / "bench" / "absent.json"
    if absences.exists():
        found |= {name: f"cannot be had: {why}" for name, why in json.loads(absences.read_text()).items()}
    for package in (
        *("libtbb-dev", "libthrust-dev", "libeigen3-dev", "libopenblas-dev", "libdnnl-dev", "libxnnpack-dev"),
        *("libsleef-dev", "libxsimd-dev", "libhwy-dev", "libc6"),
    ):
        if shutil.which("dpkg-query"):
            shown = subprocess.run(
                ["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False
            )
            found[package] = shown.stdout or "not installed"
    return found


def limits(threads_list, directory, seconds, quick):
    """name -> {threads: figure}: the machine on its own, before anybody else runs."""
    work = works.Work("limit", "machine", "fp32", "4M" if quick else "64M")
    np.zeros(works.count(work.shape), np.float32).tofile(pathlib.Path(directory) / "x")
    found = {}
    for threads in threads_list:
        for who, t in run_program("limits", work, threads, directory, seconds).items():
            name = who.removeprefix("limit ")
            size = works.count(work.shape) * 4 * (2 if name.startswith("copy") else 1)
            moved = name.startswith(("read", "copy"))
            figure = size / t / 1e9 if moved else threads * 2**30 / t / 1e9
            found.setdefault(name + (", GB/s" if moved else ", GFLOP/s"), {})[str(threads)] = figure
    (pathlib.Path(directory) / "x").unlink()
    return found
