"""A Sphinx extension: a page with numbered lines for each public header and op table, so that the reference can link to a line."""
import html
import pathlib
import re

import pygments
import pygments.formatters
import pygments.lexers

from reference import TOP

ROOTS = ["include/tapedeck", "lib/ops"]


def pages(app):
    formatter = pygments.formatters.HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, cssclass="highlight source")
    lexer = pygments.lexers.CppLexer()
    for path in files():
        name = path.relative_to(TOP)
        text = pygments.highlight(path.read_text(encoding="utf-8"), lexer, formatter)
        yield f"source/{name}", {"title": str(name), "body": f"<h1>{html.escape(str(name))}</h1>\n{text}", "furo_hide_toc": True}, "page.html"


def files():
    return sorted(p for root in ROOTS for p in (TOP / root).rglob("*") if p.suffix in (".h", ".cpp"))


def line_of_entry(file, op):
    """The line of an op's entry in its table."""
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if re.search(rf'\.name = "{re.escape(op)}"', line):
            return number
    return None


def setup(app):
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
