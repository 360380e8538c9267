#!/usr/bin/python3
"""Runs GradBench's own evals, from a checkout of the suite, and prints how long each tool takes.

    bench/peers/gradbench.py CHECKOUT [EVAL...] [--all] [--seconds S]

An eval is a program of the suite that sends inputs, and checks each output against its derivatives by hand. The
suite's harness connects it to a tool; this script does the same for gradbench_driver, in both of its forms, and for
the suite's derivatives by hand. It needs `make -C tools/manual` in CHECKOUT (with nlohmann/json.hpp as
cpp/json.hpp) and Debian's python3-pydantic, python3-scipy and python3-dataclasses-json, but no Rust and no
containers. Times are means of the times that tools report, on one thread.

The host of a virtual machine may have taken free memory back; then a tool's first access to a gigabyte takes seconds
instead of a twentieth of a second. So memory is touched and freed again before each evaluation that needs much.
"""
import argparse
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys

DRIVER = pathlib.Path(__file__).resolve().parents[2] / "build/bench/gradbench_driver"
DERIVATIVES = ("jacobian", "gradient", "dir")   # functions of the evals
LARGE = ("gmm", "ba", "ht", "kmeans", "det", "ode")   # evals whose largest sizes need more than 100 MB
TOUCHED = 4 << 30                                     # bytes, about as much as the largest evaluation needs
# The sizes of docs/reference/performance/gradbench.md, as options of the evals.
SIZES = {
    "hello": [""],
    "gmm": ["-d 2 -k 5", "-d 10 -k 50", "-d 64 -k 100"],
    "ba": ["--min 1 --max 1", "--min 8 --max 8", "--min 14 --max 14"],
    "ht": ["--min 1 --max 1", "--min 7 --max 7", "--min 11 --max 11"],
    "lstm": ["-l 2 -c 1024", "-l 2 -c 8192", "-l 6 -c 8192"],
    "kmeans": ["-k 10 -n 1000 -d 8", "-k 1000 -n 1000 -d 8", "-k 1000 -n 10000 -d 16"],
    "llsq": ["-n 16", "-n 512", "-n 16392"],
    "lse": ["-n 2500", "-n 80000", "-n 1280000"],
    "det": ["-l 5", "-l 8", "-l 11"],
    "ode": ["-n 1000 -s 1", "-n 10000 -s 10", "-n 100000 -s 1", "-n 100000 -s 100"],
    "particle": [""],
    "saddle": [""],
}
# python3-pydantic of Debian 12 is version 1, in which model_validate has the name parse_obj.
EVAL = """
import runpy, sys, pydantic
if not hasattr(pydantic.BaseModel, "model_validate"):
    pydantic.BaseModel.model_validate = classmethod(lambda cls, value: cls.parse_obj(value))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(command, checkout):
    environment = dict(os.environ, PYTHONPATH=str(checkout / "python/gradbench"), OMP_NUM_THREADS="1")
    return subprocess.Popen(command, cwd=checkout, env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def touch_memory():
    with mmap.mmap(-1, TOUCHED) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        memory[::mmap.PAGESIZE] = bytes(TOUCHED // mmap.PAGESIZE)


def run(checkout, name, tool, options):
    """Times in nanoseconds by (function, description), and the number of outputs that the eval refused."""
    evaluation = start([sys.executable, "-c", EVAL, f"python/gradbench/gradbench/evals/{name}/run.py", *options], checkout)
    process = start(tool, checkout)
    times, refused, asked = {}, 0, None
    for line in evaluation.stdout:
        message = json.loads(line)
        if message["kind"] == "analysis":
            if not message["valid"]:
                refused += 1
                print(f"{name} {asked}: {message.get('error', 'refused')[:400]}", file=sys.stderr)
            reply = json.dumps({"id": message["id"]}) + "\n"
        elif message["kind"] == "end":
            break
        else:
            if message["kind"] == "evaluate" and name in LARGE:
                touch_memory()
            process.stdin.write(line)
            process.stdin.flush()
            reply = process.stdout.readline()
            if not reply:
                raise SystemExit(f"{tool[0]} ended in {name}")
        if message["kind"] == "evaluate":
            asked = (message["function"], message.get("description", ""))
            answer = json.loads(reply)
            if not answer["success"]:
                refused += 1
                print(f"{name} {asked}: {answer['error'][:400]}", file=sys.stderr)
            spent = [t["nanoseconds"] for t in answer.get("timings") or [] if t["name"] == "evaluate"]
            if spent:
                times[asked] = statistics.mean(spent)
        evaluation.stdin.write(reply)
        evaluation.stdin.flush()
    for program, what in ((evaluation, f"the eval {name}"), (process, tool[0])):
        program.stdin.close()
        if program.wait() != 0:
            raise SystemExit(f"{what} failed")
    return times, refused


def tools_for(checkout, name):
    tools = {"natural": [DRIVER, "natural"], "expert": [DRIVER, "expert"]}
    if (checkout / f"tools/manual/{name}.cpp").exists():
        tools["by hand"] = [sys.executable, "-m", "gradbench.cpp", "manual"]
    return tools


def print_row(key, row):
    hand = row.get("by hand")
    columns = [f"{form} {t / 1e6:11.4f} ms" + (f" {t / hand:7.2f}" if hand and form != "by hand" else "")
               for form, t in row.items()]
    print(f"  {key[0]:10} {key[1]:26} " + "   ".join(columns), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("evals", nargs="*", metavar="EVAL", help="all by default")
    parser.add_argument("--all", action="store_true", help="all sizes of the suite, which takes an hour")
    parser.add_argument("--seconds", default="1", help="least time of each function (1)")
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    refused, means = 0, {}
    for name in arguments.evals or SIZES:
        print(name)
        rows = {}
        for size in [""] if arguments.all else SIZES[name]:
            options = size.split() + ([] if name == "hello" else ["--min-seconds", arguments.seconds])
            for form, tool in tools_for(checkout, name).items():
                times, bad = run(checkout, name, tool, options)
                refused += bad
                for key, time in times.items():
                    rows.setdefault(key, {})[form] = time
        for key, row in rows.items():
            print_row(key, row)
        derivatives = [row for key, row in rows.items() if key[0] in DERIVATIVES and "by hand" in row]
        if derivatives:
            means[name] = {form: statistics.geometric_mean(row[form] / row["by hand"] for row in derivatives)
                           for form in ("natural", "expert")}
    print("times over derivatives by hand, geometric means")
    for name, mean in means.items():
        print(f"  {name:10} natural {mean['natural']:6.2f}   expert {mean['expert']:6.2f}")
    for form in ("natural", "expert") if means else ():
        print(f"  all, {form}: {statistics.geometric_mean(m[form] for m in means.values()):.2f}")
    raise SystemExit(1 if refused else 0)


if __name__ == "__main__":
    main()
