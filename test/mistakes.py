#!/usr/bin/python3
"""Compiles the programs of test/mistakes.txt with g++ and, where it is installed, clang++, and checks what the compiler says.

usage: test/mistakes.py [--show]     --show prints what it says
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TEST = pathlib.Path(__file__).resolve().parent
MOST_LINES = 15
PRELUDE = """#include <tapedeck/compile.h>
#include <tapedeck/map.h>
#include <tapedeck/minimize.h>
#include <tapedeck/nn.h>
#include <tapedeck/tapedeck.h>
namespace td = tapedeck;
const td::Tensor x = td::tensor({1.0, 2.0});
const td::Variable w(x);
"""


def programs():
    """Their wanted words, those wanted anywhere, whether the output may be long, and their text."""
    for part in re.split(r"^//! ", (TEST / "mistakes.txt").read_text(), flags=re.M)[1:]:
        words, code = part.split("\n", 1)
        words, _, shown = words.partition(" // ")
        yield words.removeprefix("long: ").split("|"), shown, words.startswith("long: "), code


def main():
    faults, all_programs = 0, list(programs())
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for compiler in filter(shutil.which, ["g++", "clang++"]):
            flags = [compiler, "-std=c++20", f"-I{TEST.parent / 'include'}"]
            header = pathlib.Path(folder, compiler + ".h")
            header.write_text(PRELUDE)
            made = f"{header}.{'gch' if compiler == 'g++' else 'pch'}"
            subprocess.run([*flags, "-x", "c++-header", header, "-o", made], check=True)
            use = ["-include", header] if compiler == "g++" else ["-include-pch", made]

            def output_of(program, command=(*flags, "-fsyntax-only", *use, "-x", "c++", "-")):
                return subprocess.run(command, input=program[3], capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C.UTF-8")).stderr

            for (words, shown, may_be_long, code), output in zip(all_programs, pool.map(output_of, all_programs)):
                first = next((line for line in output.splitlines() if "error: " in line), "no error")
                length = output.count("\n")
                says = any(w in first for w in words) and shown in output
                if says and (may_be_long or length <= MOST_LINES) and "--show" not in sys.argv:
                    continue
                print(f"{compiler}: {length} lines, wanted: {' or '.join(words)}{shown and ', and: ' + shown}\n{code.strip()}\n-> {first}\n")
                faults += not says or not (may_be_long or length <= MOST_LINES)
    print(f"{len(all_programs)} programs, {faults} faults")
    return faults != 0


if __name__ == "__main__":
    sys.exit(main())
