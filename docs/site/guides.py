"""The guides and the examples' READMEs as pages of the site, with links that hold there."""
import os
import pathlib
import re
import shutil

from reference import EXAMPLES, TOP

# Each has a caption and the pages below it, by their paths in docs/.
CHAPTERS = [
    ("Start", ["start/first_programs", "start/install", "start/pitfalls", "start/from_pytorch", "start/from_jax", "start/from_tensorflow", "start/tensorflow_walkthrough"]),
    ("Guide", ["guide/basics", "guide/differentiation", "guide/forward_mode", "guide/control_flow", "guide/custom_gradients", "guide/map", "guide/map_scan",
               "guide/scalars", "guide/compile", "guide/debugging", "guide/networks", "guide/training", "guide/optimizers", "guide/checkpoints", "guide/data",
               "guide/scaling", "guide/adding_an_op", "guide/renamed"]),
    ("Reference", ["reference/performance", "reference/accuracy"]),
    ("Inside", ["inside/design", "inside/tour", "inside/engine", "inside/elementwise", "inside/compiled_functions", "inside/testing", "inside/decisions"]),
]
# The pages in the folder of a page's name, which the site shows below it.
PARTS = {
    "start/tensorflow_walkthrough": ["training", "differences"],
    "inside/testing": ["cases", "arm", "planted_faults", "planted_faults_control", "small_changes"],
    "reference/performance": ["beside_libtorch", "threads", "half_precision", "compiled_functions", "gradbench", "replicas"],
    "inside/decisions": ["tapes", "memory", "ops", "kernels", "interface", "elementwise_functions", "map", "compiled_functions", "groups", "networks", "optimizers", "files",
                         "replicas", "code_base"],
}
NOT_PAGES = {"reference/ops", "index"}     # the reference and the front page take their places


def write(out):
    """Writes the Markdown of all guides and examples, and copies their pictures. Returns the names of the examples."""
    parts = {f"{name}/{part}" for name, below in PARTS.items() for part in below}
    listed = {name for _, names in CHAPTERS for name in names} | parts | NOT_PAGES
    there = {str(p.relative_to(TOP / "docs").with_suffix("")) for p in (TOP / "docs").rglob("*.md") if not p.is_relative_to(EXAMPLES)}
    if listed != there:
        raise SystemExit(f"docs: list in docs/site/guides.py, or take out: {', '.join(sorted(listed ^ there))}")
    for name in sorted(listed - NOT_PAGES):
        place(TOP / f"docs/{name}.md", out, f"{name}.md", [f"{pathlib.Path(name).name}/{part}" for part in PARTS.get(name, [])])
    examples = sorted(p.parent.name for p in (TOP / "examples").glob("*/README.md") if p.parent.name != "data")
    for name in examples + ["data"]:
        place(TOP / f"examples/{name}/README.md", out, f"examples/{name}.md")
    for picture in [*(TOP / "docs/pictures").iterdir(), *(TOP / "examples").glob("*/*.svg")]:
        target = out / "pictures" / picture.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    return examples


def place(source, out, page, below=()):
    text = with_links(source.read_text(encoding="utf-8"), source, page)
    if below:
        text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(below) + "\n```\n"
    (out / page).parent.mkdir(parents=True, exist_ok=True)
    (out / page).write_text(text, encoding="utf-8")


def with_links(text, source, page):
    """Links name files beside the source; the site has them elsewhere, beside the page."""
    def changed(m):
        link, _, anchor = m[2].partition("#")
        if not link or ":" in link:
            return m[0]
        file = pathlib.Path(os.path.normpath(source.parent / link))
        if not file.exists():
            raise SystemExit(f"docs: {source.relative_to(TOP)} links to {link}, which is not there")
        there = page_of(file)
        if not there:
            return m[1].lstrip("![")     # its words alone
        return f"{m[1]}]({os.path.relpath(there, os.path.dirname(page) or '.')}{'#' + anchor if anchor else ''})"

    blocks = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(b if b.startswith("```") else re.sub(r"(!?\[[^\]]*)\]\(([^)\s]+)\)", changed, b) for b in blocks)


def page_of(file):
    name = file.relative_to(TOP)
    parts = name.parts
    if name == pathlib.Path("docs/reference/ops.md"):
        return "reference/index.rst"
    if parts[0] == "docs" and name.suffix == ".md" and not file.is_relative_to(EXAMPLES):
        return str(name.relative_to("docs"))
    if parts[0] == "examples" and name.name == "README.md" and len(parts) == 3:
        return f"examples/{parts[1]}.md"
    if name.suffix in (".svg", ".png"):
        return f"pictures/{name.name}"
    return None


def gallery(examples):
    out = ["# Examples\n", "`scripts/demo NAME` builds and runs one, and writes its picture to the current folder.\n", "::::{container} gallery"]
    for name in examples:
        text = (TOP / f"examples/{name}/README.md").read_text(encoding="utf-8")
        title = re.match(r"# (?:\w+: )?(.*)", text)[1]
        picture = TOP / f"examples/{name}/{name}.svg"
        out.append(":::{container} example-card")
        if picture.exists():
            out.append(f"[![{title}](pictures/{name}.svg)](examples/{name}.md)\n")
        out.append(f"**[{name}](examples/{name}.md)**: {title}\n\n:::")
    out.append("::::\n\n```{toctree}\n:hidden:\n\n" + "\n".join(f"examples/{n}" for n in examples + ["data"]) + "\n```\n")
    return "\n".join(out)
