"""The reference as reStructuredText: one page for each header."""
import re

import sphinx.domains.cpp
import sphinx.util.cfamily

from reference import TOP, walk
from source_pages import line_of_entry

DOMAIN = {"function": "function", "friend": "function", "variable": "member", "typedef": "type", "enum": "enum-class", "enumvalue": "enumerator",
          "class": "class", "struct": "struct", "concept": "concept"}


class Facts:
    """The rows of docs/reference/ops.md: what the op table says of a function."""

    def __init__(self):
        self.rows = {}
        for line in (TOP / "docs/reference/ops.md").read_text(encoding="utf-8").split("\n"):
            cells = [c.strip().replace(r"\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            m = re.match(r"`[^`(]*?([\w:]+)\(", cells[0]) if len(cells) == 6 else None
            if m:
                self.rows[m[1]] = dict(zip(["meaning", "tensorflow", "derivative", "example", "dtypes"], cells[1:]))

    def of(self, name):
        return self.rows.get(name, {})


class Pages:
    def __init__(self, headers, facts):
        self.headers, self.facts = headers, facts
        self.types = {i.name for h in headers.values() for i in h.items if i.kind in ("class", "struct", "enum", "concept")}
        self.functions = {i.name for h in headers.values() for i in h.items if i.kind == "function"}

    # ---- words

    def text(self, words):
        """A comment as reStructuredText, with links where it names what is public."""
        return "\n\n".join(self.paragraph(p) for p in words.split("\n\n"))

    def paragraph(self, words):
        out = []
        for part in re.split(r"(`[^`]+`|[A-Za-z_][\w:]*(?:\(\))?)", words):
            name = part.strip("`").removesuffix("()").removeprefix("td::")
            if part.startswith("`"):
                out.append(self.link(part.strip("`"), name) if name in self.types | self.functions else f"``{part.strip('`')}``")
            elif name in self.types and name[0].isupper() or name in self.functions and ("_" in name or part.endswith("()")):
                out.append(self.link(part, name))
            else:
                out.append(re.sub(r"([*|_`\\])", r"\\\1", part))
        # A role and a literal need a border on both sides.
        joined = ""
        for part in out:
            role = part.startswith((":", "``")) and part.endswith("`") and len(part) > 2
            if joined.endswith("`") and part and not part[0].isspace():
                joined += "\\ "
            elif role and joined and not joined[-1].isspace():
                joined += "\\ "
            joined += part
        return joined.strip()

    @staticmethod
    def link(shown, name):
        return f":cpp:any:`{shown} <tapedeck::{name}>`"

    # ---- pages

    def page(self, header):
        title = f"{header.name}"
        out = [f"{title}\n{'=' * len(title)}\n", self.text(header.remark) + "\n", f"``#include <tapedeck/{header.name}>``\n", ".. cpp:namespace:: tapedeck\n"]
        told = set()     # functions whose facts are on the page
        for group, examples in self.groups(header):
            out.append(self.group(header, group, 0, told, examples))
        return "\n".join(out)

    def groups(self, header):
        """Items that share a contract, and the examples that are shown below them: an example of several functions below the last."""
        groups = grouped(header.items)
        waiting = list(header.examples)
        for n, group in enumerate(groups):
            later = {i.name for g in groups[n + 1:] for i in walk(g)}
            ready = [e for e in waiting if not any(name in later for name in e[0])]
            waiting = [e for e in waiting if e not in ready]
            yield group, ready

    def group(self, header, group, depth, told, examples=()):
        first = group[0]
        pad = "   " * depth
        lines = []
        kind = DOMAIN[first.kind]
        signatures = [self.signature(i, depth > 0) for i in group]
        lines.append(f"{pad}.. cpp:{kind}:: " + f"\n{pad}   {' ' * len(kind)}        ".join(signatures))
        lines.append("")
        body = [self.text(w) for w in (first.contract, first.remark) if w]
        if depth == 0:
            body += self.fact_list([i for i in group if i.name not in told])
            told.update(i.name for i in group)
            body.append(self.source_links(header, group))
        for names, example in examples:
            body.append(".. rst-class:: example\n")
            body.append(as_rst(example))
        for part in body:
            lines.append(indented(part, pad + "   "))
            lines.append("")
        text = "\n".join(lines)
        for item in group:
            for inner in grouped(item.members):
                text += "\n" + self.group(header, inner, depth + 1, told)
        return text

    def fact_list(self, group):
        out = []
        for item in group:
            fact = self.facts.of(item.name) if item.kind == "function" else None
            if not fact:
                continue
            own = f" of {item.name}" if len({i.name for i in group}) > 1 else ""
            lines = []
            if fact["meaning"].rstrip(".") not in item.contract:
                lines.append(f":Computes{own}: {self.text(fact['meaning'])}")
            lines.append(f":Derivative{own}: {self.text(fact['derivative'])}")
            if fact["dtypes"]:
                lines.append(f":Dtypes{own}: {fact['dtypes']}")
            if fact["tensorflow"]:
                lines.append(f":TensorFlow{own}: {self.text(fact['tensorflow'])}")
            if "\n".join(lines) not in out:
                out.append("\n".join(lines))
        return ["\n".join(out)] if out else []

    def source_links(self, header, group):
        up = "../" * (1 + header.name.count("/"))
        links = [f"`{header.name}, line {group[0].line} <{up}source/include/tapedeck/{header.name}.html#L-{group[0].line}>`__"]
        for item in group:
            entry = self.entry(header, item.name) if item.kind == "function" else None
            if entry and entry not in links:
                links.append(entry)
        return ".. rst-class:: declared\n\nDeclared in " + ", in the op table at ".join(links[:2]) + "."

    def entry(self, header, name):
        up = "../" * (1 + header.name.count("/"))
        for file in (TOP / "lib/ops").rglob(header.name.split("/")[-1].replace(".h", ".cpp")):
            line = line_of_entry(file, name.replace("::", "_")) or line_of_entry(file, name.split("::")[-1])
            if line:
                where = file.relative_to(TOP)
                return f"`{where}, line {line} <{up}source/{where}.html#L-{line}>`__"
        return None

    # ---- signatures

    def signature(self, item, inside):
        """As Sphinx reads it. What it cannot read is left out, from constraints to all but the name."""
        whole = re.sub(r"\s+", " ", item.signature).strip()
        whole = re.sub(r"\b(enum class|struct|class) (?=[\w:]+$)", "", whole)
        if inside and item.kind in ("class", "struct", "enum", "enumvalue"):
            whole = whole.replace(item.name, item.name.rpartition("::")[2])
        free = re.sub(r" requires .*$", "", whole)
        for attempt in (whole, free, re.sub(r"^template<.*?> (?=\w)", "", free), re.sub(r" = .*$", "", free)):
            if parses(DOMAIN[item.kind], attempt):
                return attempt
        raise SystemExit(f"docs: Sphinx cannot read: {item.kind} {item.signature}")


class Quiet:
    cpp_id_attributes, cpp_paren_attributes, cpp_index_common_prefix = [], [], []


def parses(kind, signature):
    parser = sphinx.domains.cpp.DefinitionParser(signature, location=None, config=Quiet)
    kind = {"enum-class": "enum", "struct": "class"}.get(kind, kind)
    try:
        parser.parse_declaration(kind, kind)
        parser.assert_end()
        return True
    except sphinx.util.cfamily.DefinitionError:
        return False


def grouped(items):
    groups = []
    for item in items:
        if item.shared and groups and item.kind == groups[-1][-1].kind and not item.remark and item.kind == "function":
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def indented(text, pad):
    return "\n".join(pad + line if line else "" for line in text.split("\n"))


def as_rst(markdown):
    """An example's paragraphs and code."""
    out = []
    for n, part in enumerate(re.split(r"^```cpp\n(.*?)^```$", markdown, flags=re.M | re.S)):
        if n % 2:
            out.append(".. code-block:: cpp\n\n" + indented(part.rstrip("\n"), "   "))
        elif part.strip():
            out.append(re.sub(r"`([^`]+)`", r"``\1``", part.strip()))
    return "\n\n".join(out)
