#!/usr/bin/python3
"""Checks the pages of the documentation: links lead to files, and no page but generated ones has more than 3,000 words."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
MOST_WORDS = 3000
GENERATED = {"docs/reference/ops.md", "docs/reference/accuracy.md", "docs/start/from_tensorflow.md"}

faults = []
pages = [*TOP.glob("*.md"), *TOP.glob("docs/**/*.md"), *TOP.glob("examples/*/README.md")]
for page in pages:
    name = page.relative_to(TOP).as_posix()
    text = page.read_text(encoding="utf-8")
    words = len(text.split())
    if words > MOST_WORDS and name not in GENERATED:
        faults.append(f"{name} has {words} words; {MOST_WORDS} at most")
    without_code = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code):
        if not link.startswith(("http:", "https:", "#")) and not (page.parent / link.split("#")[0]).exists():
            faults.append(f"{name} links to {link}, which is not there")
print("\n".join(faults) or f"{len(pages)} pages")
sys.exit(bool(faults) or len(pages) < 100)
