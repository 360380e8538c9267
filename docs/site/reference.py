#!/usr/bin/python3
"""The public interface as data: what each header declares, with its contract and example.

usage: docs/site/reference.py --check [HEADER…]   lists what lacks a contract or an example, such as ops/index.h

Declarations come from doxygen; comments from the headers themselves. A comment holds for the declarations below it up to an empty
line or the next comment. Examples are the sections of docs/reference/examples/X.md for the header tapedeck/X.h: the heading names one or
several of its functions and classes, the code uses them.
"""
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

TOP = pathlib.Path(__file__).resolve().parents[2]
HEADERS = TOP / "include/tapedeck"
EXAMPLES = TOP / "docs/reference/examples"


@dataclasses.dataclass
class Item:
    """A declaration: a function, a type, a constant, or a member of a type."""
    kind: str               # as doxygen names it: function, variable, typedef, enum, enumvalue, class, struct, concept, friend
    name: str               # without tapedeck::
    signature: str
    line: int               # where it begins, from 1
    contract: str = ""      # its own comment, or that of the declarations that it stands below
    shared: bool = False    # the contract is that of the item before
    remark: str = ""        # what is said behind it
    members: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Header:
    name: str               # ops/index.h
    remark: str             # what it begins with
    items: list
    examples: list          # (names, Markdown)


def run_doxygen(folder):
    settings = (TOP / "docs/site/Doxyfile").read_text() + f'\nOUTPUT_DIRECTORY = "{folder}"\n'
    done = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=TOP, stderr=subprocess.PIPE)
    if done.returncode or done.stderr:
        sys.exit(f"doxygen:\n{done.stderr}")
    return pathlib.Path(folder) / "xml"


def text_of(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip() if node is not None else ""


class Source:
    """The lines of a header, and the comments around them. Lines count from 1."""

    def __init__(self, path):
        self.lines = [""] + path.read_text(encoding="utf-8").split("\n")

    def is_comment(self, line):
        return self.lines[line].lstrip().startswith("//") and not self.goes_on(line)

    def goes_on(self, line):
        """Whether a remark behind a declaration goes on here."""
        return bool(re.match(r"\s{12,}// ", self.lines[line]))

    def begin(self, line):
        """Where the declaration with this line begins."""
        ends = re.compile(r"(?!\s*template <[^>]*$).*[;{}:,]\s*(//.*)?$|^\s*#|^\s*$")   # parameters of templates go on
        while line > 1 and not self.is_comment(line - 1) and not ends.match(self.lines[line - 1]):
            line -= 1
        return line

    def comment_above(self, line):
        first = line
        while first > 1 and self.is_comment(first - 1):
            first -= 1
        return self.words(range(first, line))

    def comment_behind(self, line):
        """On this line and those below that have nothing else."""
        m = re.search(r"\S +// (.*)$", self.lines[line])
        if not m:
            return ""
        found = [m[1]]
        while self.goes_on(line + 1):
            line += 1
            found.append(self.lines[line].split("// ", 1)[1])
        return " ".join(found)

    def words(self, lines):
        out = ""
        for n in lines:
            text = re.sub(r"^\s*///? ?", "", self.lines[n])
            out += "\n\n" if not text else text if not out or out.endswith("\n") else " " + text
        return out.strip()

    def stands_below(self, line, above):
        """Whether nothing but code is between two declarations."""
        return all(self.lines[n].strip() and not self.is_comment(n) for n in range(above, line))

    def remark(self):
        end = 1
        while self.is_comment(end):
            end += 1
        return self.words(range(1, end))


class Reader:
    def __init__(self, folder):
        self.folder = folder
        self.sources = {}
        self.headers = {}

    def read(self):
        for path in sorted(HEADERS.rglob("*.h")):
            name = str(path.relative_to(HEADERS))
            if not name.startswith("simd/"):
                self.sources[name] = Source(path)
                self.headers[name] = Header(name, self.sources[name].remark(), [], examples_of(name))
        for file in sorted(self.folder.glob("*.xml")):
            if re.match(r"namespacetapedeck|classtapedeck|structtapedeck|concepttapedeck", file.name) and "detail" not in file.name:
                self.compound(xml.parse(file).getroot().find("compounddef"))
        for header in self.headers.values():
            self.nest(header)
            for outer, level in [(0, header.items)] + [(i.line, i.members) for i in walk(header.items)]:
                level.sort(key=lambda i: i.line)
                self.comment(level, self.sources[header.name], outer)
        return self.headers

    def compound(self, node):
        kind = node.get("kind")
        if node.get("prot", "public") != "public":
            return
        scope = text_of(node.find("compoundname")).removeprefix("tapedeck")
        scope = scope.removeprefix("::")
        if kind in ("class", "struct", "concept"):
            self.add(node.find("location"), kind, scope, template_of(node) + (scope if kind == "concept" else f"{kind} {scope}"))
        for member in node.iter("memberdef"):
            if member.get("prot") in ("public", None):
                self.member(member, scope, kind in ("class", "struct"))

    def member(self, node, scope, in_type):
        name = text_of(node.find("name"))
        if name.startswith("@") or is_routine(node, name, scope):
            return
        whole = f"{scope}::{name}" if scope else name
        item = self.add(node.find("location"), node.get("kind"), whole, signature_of(node, scope, whole, in_type))
        for value in node.findall("enumvalue") if item else []:
            full = f"{whole}::{text_of(value.find('name'))}"
            item.members.append(Item("enumvalue", full, full, self.line_of(item, full.rpartition("::")[2], node.find("location"))))

    def line_of(self, item, word, location):
        source = self.sources[self.header_of(location)]
        for n in range(item.line, int(location.get("bodyend", item.line)) + 1):
            if re.search(rf"\b{re.escape(word)}\b", source.lines[n].split("//")[0]):
                return n
        return item.line

    @staticmethod
    def header_of(location):
        return location.get("file").removeprefix("include/tapedeck/")

    def add(self, location, kind, name, signature):
        header = self.header_of(location)
        if header not in self.headers:
            return None
        item = Item(kind, name, signature, self.sources[header].begin(int(location.get("line"))))
        self.headers[header].items.append(item)
        return item

    def nest(self, header):
        """Members go to their types; those that are for the library's own use go."""
        types = {i.name: i for i in header.items if i.kind in ("class", "struct")}
        source = self.sources[header.name]
        top = []
        for item in header.items:
            outer = types.get(item.name.rpartition("::")[0]) if item.kind != "enumvalue" else None
            if not outer:
                top.append(item)
            elif not internal(source, outer.line, item.line):
                outer.members.append(item)
        header.items = top

    @staticmethod
    def comment(level, source, outer):
        before = None
        for item in level:
            item.remark = source.comment_behind(item.line) if item.kind in ("variable", "enumvalue", "typedef") else ""
            item.contract = source.comment_above(item.line)
            if item.line == outer:     # values on the line of their enum: the comment is the enum's
                item.contract = ""
            elif not item.contract and not item.remark and before and source.stands_below(item.line, before.line):
                item.contract, item.shared = before.contract, bool(before.contract)
            before = item


def is_routine(node, name, scope):
    """Copies, moves, destructors, and what is deleted or only befriended."""
    own = scope.rpartition("::")[2].partition("<")[0]
    args = text_of(node.find("argsstring"))
    takes_own = re.match(rf"\((const )?{own} ?&{{0,2}} ?\w*\)", args)
    befriended = node.get("kind") == "friend" and re.search(r"\b(class|struct)\b", text_of(node.find("definition")) + text_of(node.find("type")))
    return name == f"~{own}" or name in (own, "operator=") and takes_own or args.endswith("=delete") or befriended


def signature_of(node, scope, whole, in_type):
    """A member's as it is written in its type, another's with its namespaces below tapedeck."""
    kind, template = node.get("kind"), template_of(node)
    definition, args, initial, requires = (text_of(node.find(n)) for n in ("definition", "argsstring", "initializer", "requiresclause"))
    if kind == "enum":
        return f"enum class {whole}"
    if kind == "typedef":
        aliased = text_of(node.find("type")).replace("tapedeck::", "")
        return f"{template}{whole.rpartition('::')[2] if in_type else whole} = {aliased}"
    definition = definition.replace("tapedeck::", "")
    if in_type:
        definition = re.sub(rf"\b{re.escape(scope)}(?: ?<[^<>]*>)?::", "", definition)
    signature = template + definition + ("" if args.startswith(")") else args)     # a pointer to a function has them already
    if kind == "variable" and initial and len(initial) < 60 and "[" not in initial:
        signature += " " + initial
    signature = re.sub(r"\s*=0$|= ?default$", "", signature).strip()
    return f"{signature} requires {requires}" if requires else signature


def internal(source, begin, line):
    return any(re.match(r"\s*// Internal\b", source.lines[n]) for n in range(begin, line))


def template_of(node):
    parameters = node.find("templateparamlist")
    if parameters is None:
        return ""
    def one(p):
        value = text_of(p.find("defval"))
        name = text_of(p.find("declname"))
        return text_of(p.find("type")) + (f" {name}" if name else "") + (f" = {value}" if value else "")
    return f"template<{', '.join(one(p) for p in parameters.findall('param'))}> "


def walk(items):
    for item in items:
        yield item
        yield from walk(item.members)


def examples_of(header):
    file = EXAMPLES / pathlib.Path(header).with_suffix(".md")
    if not file.exists():
        return []
    sections = re.split(r"^## +(.*)$", file.read_text(encoding="utf-8"), flags=re.M)
    return [([n.strip() for n in names.split(",")], body.strip()) for names, body in zip(sections[1::2], sections[2::2])]


def read():
    with tempfile.TemporaryDirectory() as folder:
        return Reader(run_doxygen(folder)).read()


def needs_example(item):
    """Functions, and types that do something: not options, whose use an example of their function shows, nor operators."""
    if item.kind == "function":
        return "operator" not in item.name
    return item.kind in ("class", "struct") and any(m.kind == "function" and not constructs(m) for m in item.members)


def constructs(member):
    *scope, name = member.name.split("::")
    return bool(scope) and name == scope[-1].split("<")[0]


def for_users(items):
    """All of them and their members, but the members of what is for the library."""
    for item in items:
        yield item
        if not (item.contract and item.contract.startswith("For the library")):
            yield from for_users(item.members)


def lacking(header):
    """Lines that name what a header lacks."""
    for item in for_users(header.items):
        if not item.contract and item.kind not in ("variable", "enumvalue", "friend") and not constructs(item):
            yield f"{header.name}:{item.line}: {item.name} has no comment"
    shown = {n for names, _ in header.examples for n in names}
    known = {i.name for i in walk(header.items)}
    for name in sorted({i.name for i in header.items if needs_example(i)} - shown):
        yield f"{header.name}: no example of {name} in docs/reference/examples/{header.name[:-2]}.md"
    for names, body in header.examples:
        code = "\n".join(re.findall(r"^```cpp\n(.*?)^```$", body, flags=re.M | re.S))
        for name in names:
            if name not in known:
                yield f"docs/reference/examples/{header.name[:-2]}.md: {name} is not in {header.name}"
            elif not re.search(rf"\b{re.escape(name.split('::')[-1])}\b", code):
                yield f"docs/reference/examples/{header.name[:-2]}.md: the example of {name} does not use it"


def main():
    headers = read()
    chosen = [n.removeprefix("tapedeck/") for n in sys.argv[2:]] or headers
    found = [line for name in chosen for line in lacking(headers[name])]
    print("\n".join(found) or "every function and class has a contract and an example")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
