#!/usr/bin/python3
"""site.py FOLDER: every link of the site leads somewhere, every page loads without an error at two widths, light and dark, and the
search finds functions."""
import html.parser
import pathlib
import sys
import urllib.parse

from browser import Browser

SIZES = [(1280, False), (400, True)]
FOUND = {"gather": "tapedeck::gather", "apply_gradients": "tapedeck::Optimizer::apply_gradients", "Cholesky": "cholesky"}


class Page(html.parser.HTMLParser):
    """The links of a page, and what links can lead to."""

    def __init__(self, file):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[k] for k in ("id", "name") if values.get(k)}
        self.links += [values[k] for k in ("href", "src") if values.get(k)]


def dead_links(site):
    pages = {f.resolve(): Page(f) for f in site.rglob("*.html")}
    for file, page in pages.items():
        for link in page.links:
            target = urllib.parse.urlparse(link)
            if target.scheme or target.netloc:
                continue
            there = (file.parent / urllib.parse.unquote(target.path)).resolve() if target.path else file
            anchor = urllib.parse.unquote(target.fragment)
            if not there.is_file():
                yield f"{file.relative_to(site.resolve())}: {link} is not there"
            elif anchor and there in pages and anchor not in pages[there].anchors:
                yield f"{file.relative_to(site.resolve())}: {link} has no such place"


def load(browser, site, page):
    for width, dark in SIZES if "source" not in page.relative_to(site).parts else SIZES[:1]:
        browser.open(page, width=width, dark=dark)
        for fault in browser.errors():
            yield f"{page}, {width} pixels: {fault}"
        if browser.overflow() > 0:
            yield f"{page}: {browser.overflow()} pixels wider than {width}"
        cut = browser.run("[...document.querySelectorAll('h1, h2, p, dd')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length")
        if cut and not browser.run("!!document.querySelector('.highlight.source')"):
            yield f"{page}, {width} pixels: {cut} elements are cut off"
        background = browser.run("getComputedStyle(document.body).backgroundColor")
        if (background == "rgb(255, 255, 255)") == dark:
            yield f"{page}: background {background}, dark: {dark}"


def search(browser, site):
    for words, expected in FOUND.items():
        browser.open(f"{(site / 'search.html').resolve().as_uri()}?q={words}")
        browser.wait("document.querySelectorAll('#search-results li').length > 0")
        first = browser.run("[...document.querySelectorAll('#search-results li')].slice(0, 3).map(e => e.textContent).join(' ')")
        if expected not in first:
            yield f"a search for {words} finds first: {first}"


def main():
    site = pathlib.Path(sys.argv[1])
    pages = sorted(site.rglob("*.html"))
    faults = list(dead_links(site))
    with Browser() as browser:
        for n, page in enumerate(pages, 1):
            faults += load(browser, site, page)
            if sys.stderr.isatty():
                print(f"\r{n} of {len(pages)} pages", end="", file=sys.stderr)
        faults += search(browser, site)
    print("\n".join(faults))
    print(f"site: {len(pages)} pages, {len(faults)} faults")
    sys.exit(1 if faults or len(pages) < 100 else 0)


if __name__ == "__main__":
    main()
