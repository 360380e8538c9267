#!/usr/bin/python3
"""Builds the site: the reference of all public headers, the guides, the examples and the figures.

usage: docs/site/build.py OUT [--figures FILE]    writes HTML to OUT; FILE: what scripts/bench --json has written
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import figures
import guides
import pages
import reference
from reference import TOP

SITE = pathlib.Path(__file__).resolve().parent
MAIN = ["tensor.h", "variable.h", "gradient_tape.h", "gradients.h", "grad.h", "forward_accumulator.h", "optimizer.h", "checkpoint.h"]


def toctree(caption, names, hidden=True):
    return f".. toctree::\n   :caption: {caption}\n" + ("   :hidden:\n" if hidden else "") + "\n   " + "\n   ".join(names) + "\n"


def write_reference(headers, out):
    reference_pages = pages.Pages(headers, pages.Facts())
    lines = [":hide-toc:", "", "Reference", "=========", "", "All public headers. ``#include <tapedeck/tapedeck.h>`` includes what most programs need.", ""]
    below = {folder: [n for n in headers if n.startswith(f"{folder}/")] for folder in ("nn", "ops")}
    order = MAIN + [n for n in headers if n not in MAIN and "/" not in n]
    for caption, names in [("Tensors, tapes, training", order), ("Networks", below["nn"]), ("Ops", below["ops"])]:
        shown = [n for n in names if headers[n].items]
        lines += [caption, "-" * len(caption), "", ".. rst-class:: headers", ""]
        for name in shown:
            first = headers[name].remark.split("\n\n")[0].split(". ")[0].rstrip(".")
            lines.append(f":doc:`{name} <{name[:-2]}>`\n   {reference_pages.text(first)}.")
        lines += ["", toctree(caption, [n[:-2] for n in shown])]
        for name in shown:
            page = out / "reference" / f"{name[:-2]}.rst"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(reference_pages.page(headers[name]), encoding="utf-8")
    (out / "reference/index.rst").write_text("\n".join(lines), encoding="utf-8")


def front_page(has_figures):
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    words = guides.with_links(readme.split("## Install")[0], TOP / "README.md", "index.md")
    text = "---\nhide-toc: true\n---\n" + words + "[Start here](start/first_programs.md), or look a function up in the [reference](reference/index.rst).\n"
    for caption, names in guides.CHAPTERS:
        first = {"Reference": ["reference/index"]}.get(caption, [])
        last = {"Start": ["gallery"], "Reference": ["figures"] if has_figures else []}.get(caption, [])
        text += f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n\n" + "\n".join(first + names + last) + "\n```\n"
    return text


def complete_theme(static):
    """Debian's furo needs a web server: it imports a style sheet from there, and one script from another. Opened as files, the pages
    have neither; so what is imported takes the import's place. It also lacks the dark colours for those whose system asks for them."""
    style = static / "styles/furo.css"
    normalize = pathlib.Path("/usr/share/javascript/normalize.css/normalize.css").read_text(encoding="utf-8")
    put(style, "@import url(/javascript/normalize.css/normalize.css);", normalize)
    dark = re.search(r'body\[data-theme="dark"\] (\{.*?\})', style.read_text(encoding="utf-8"), flags=re.S)[1]
    with style.open("a", encoding="utf-8") as out:
        out.write(f'\n@media (prefers-color-scheme: dark) {{ body[data-theme="auto"] {dark} }}\n')
    put(static / "scripts/furo.js", 'import Gumshoe from "./gumshoe-patched.js";', (static / "scripts/gumshoe-patched.js").read_text(encoding="utf-8"))


def put(file, before, after):
    text = file.read_text(encoding="utf-8")
    if before not in text:
        sys.exit(f"docs: {file.name} of furo has no line: {before}")
    file.write_text(text.replace(before, after, 1), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--figures", type=pathlib.Path, default=TOP / "bench/figures.json")
    o = parser.parse_args()
    version = re.search(r"version: '([^']*)'", (TOP / "meson.build").read_text(encoding="utf-8"))[1]
    headers = reference.read()
    missing = [line for header in headers.values() for line in reference.lacking(header)]
    if missing:
        sys.exit("docs: the reference is not whole:\n" + "\n".join(missing))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder)
        (source / "reference").mkdir()
        shutil.copy(SITE / "conf.py", source)
        shutil.copytree(SITE / "static", source / "static")
        (source / "index.md").write_text(front_page(o.figures.exists()), encoding="utf-8")
        (source / "gallery.md").write_text(guides.gallery(guides.write(source)), encoding="utf-8")
        if o.figures.exists():
            (source / "figures.md").write_text(figures.page(o.figures), encoding="utf-8")
        write_reference(headers, source)
        environment = dict(os.environ, TAPEDECK_SITE=str(SITE), TAPEDECK_VERSION=version, PYTHONPATH=str(SITE))
        shutil.rmtree(o.out, ignore_errors=True)
        done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "2", "-b", "html", source, o.out], env=environment)
        if done.returncode:
            sys.exit("docs: Sphinx has found the above")
    complete_theme(o.out / "_static")
    print(f"the site is in {o.out}/index.html")


if __name__ == "__main__":
    main()
