# SPDX-License-Identifier: Apache-2.0
"""Makes the peers' virtual environment, build/bench/python, and prints the Python to run bench.py with.

Standard library only. Each package is installed by itself, so that one that cannot be had costs only itself;
absent.json beside the environment keeps the reason, and bench.py prints it. Asked again after a day.
"""

import json
import pathlib
import subprocess
import sys
import time

# PyPI's Linux wheel of PyTorch is the CUDA one: it does not import without NVIDIA's libraries, about 3 GB with them.
PACKAGES = {
    "numpy": ["numpy"],
    "torch": ["torch"],
    "onnxruntime": ["onnxruntime", "onnx"],
    "openvino": ["openvino"],
    "jax": ["jax"],
}
# What PyPI has and nobody can be asked through: said, so that its absence is seen.
NOT_ASKED = {"onednn": "a SYCL library with no Python interface; Debian's oneDNN 2.6 is asked, and PyTorch holds 3.13"}
# Looked for as wheels only: neither is built from source here.
WHEELS = {"llama-cpp-python": ["llama-cpp-python"], "ggml-python": ["ggml-python"]}


def main(directory):
    directory = pathlib.Path(directory)
    python, stamp = directory / "python" / "bin" / "python", directory / "absent.json"
    if python.exists() and stamp.exists() and time.time() - stamp.stat().st_mtime < 86400:
        return print(python)
    directory.mkdir(parents=True, exist_ok=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", directory / "python"], check=True, stdout=sys.stderr)
    absent = dict(NOT_ASKED)
    for name, packages in {**PACKAGES, **WHEELS}.items():
        wheels = ["--only-binary", ":all:"] if name in WHEELS else []
        print(f"bench: installing {name}", file=sys.stderr)
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wheels, *packages],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = [line for line in done.stderr.splitlines() if line.strip()][-1:]
            absent[name] = reason[0].removeprefix("ERROR: ") if reason else f"pip ended with {done.returncode}"
            print(f"bench: {name} cannot be had: {absent[name]}", file=sys.stderr)
    stamp.write_text(json.dumps(absent, indent=1) + "\n")
    print(python)


if __name__ == "__main__":
    main(sys.argv[1])
