"""The guides and the examples' READMEs as pages of the site, with links that hold there."""
import os
import pathlib
import re
import shutil

from reference import TOP

# Each has a caption and the pages below it, by their names in docs/.
CHAPTERS = [
    ("First", ["start", "install", "guide", "pitfalls"]),
    ("You know…", ["from_pytorch", "from_jax", "from_tensorflow", "tensorflow_walkthrough"]),
    ("Guides", ["differentiation", "forward_mode", "control_flow", "custom_gradients", "map", "map_scan", "scalars", "compile", "debugging", "networks", "training", "optimizers", "checkpoints", "data", "scaling"]),
    ("Figures", ["performance", "accuracy"]),
    ("Inside", ["design", "tour", "tour_compile", "engine", "adding_an_op", "testing", "decisions"]),
]
NOT_PAGES = {"ops", "index"}     # the reference and the front page take their places


def write(out):
    """Writes the Markdown of all guides and examples, and copies their pictures. Returns the names of the examples."""
    listed = {name for _, names in CHAPTERS for name in names} | NOT_PAGES
    there = {p.stem for p in (TOP / "docs").glob("*.md")}
    if listed != there:
        raise SystemExit(f"docs: list in docs/site/guides.py, or take out: {', '.join(sorted(listed ^ there))}")
    for name in sorted(listed - NOT_PAGES):
        place(TOP / f"docs/{name}.md", out / f"{name}.md")
    examples = sorted(p.parent.name for p in (TOP / "examples").glob("*/README.md") if p.parent.name != "data")
    for name in examples + ["data"]:
        place(TOP / f"examples/{name}/README.md", out / f"examples/{name}.md")
    for picture in [*(TOP / "docs/pictures").iterdir(), *(TOP / "examples").glob("*/*.svg")]:
        target = out / "pictures" / picture.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    return examples


def place(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(with_links(source.read_text(encoding="utf-8"), source, target), encoding="utf-8")


def with_links(text, source, target):
    """Links name files beside the source; the site has them elsewhere."""
    root = target.parent if target.parent.name != "examples" else target.parent.parent

    def changed(m):
        link, _, anchor = m[2].partition("#")
        if not link or ":" in link:
            return m[0]
        file = pathlib.Path(os.path.normpath(source.parent / link))
        if not file.exists():
            raise SystemExit(f"docs: {source.relative_to(TOP)} links to {link}, which is not there")
        page = page_of(file)
        if not page:
            return m[1].lstrip("![")     # its words alone
        return f"{m[1]}]({os.path.relpath(root / page, target.parent)}{'#' + anchor if anchor else ''})"

    blocks = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(b if b.startswith("```") else re.sub(r"(!?\[[^\]]*)\]\(([^)\s]+)\)", changed, b) for b in blocks)


def page_of(file):
    name = file.relative_to(TOP)
    parts = name.parts
    if name == pathlib.Path("docs/ops.md"):
        return "reference/index.rst"
    if parts[0] == "docs" and name.suffix == ".md" and len(parts) == 2:
        return parts[1]
    if parts[0] == "examples" and name.name == "README.md" and len(parts) == 3:
        return f"examples/{parts[1]}.md"
    if name.suffix == ".svg":
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
