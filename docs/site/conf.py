"""Sphinx's settings; build.py copies this file beside the pages that it writes."""
import os
import pathlib
import sys

site = pathlib.Path(os.environ["TAPEDECK_SITE"])
sys.path.insert(0, str(site))

project = "tapedeck"
author = "the developers of tapedeck"
copyright = "the developers of tapedeck"
release = os.environ["TAPEDECK_VERSION"]
extensions = ["myst_parser", "source_pages"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
default_role = "code"
highlight_language = "text"
primary_domain = "cpp"
nitpicky = False
smartquotes = False
html_theme = "furo"
html_title = f"tapedeck {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "monokai"
toc_object_entries_show_parents = "hide"
