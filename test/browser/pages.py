#!/usr/bin/python3
"""Opens pages of write_html in headless Chromium: folding, search, zoom, keys, how much is drawn, light and dark.

usage: pages.py PAGES [FOLDER]; FOLDER keeps the pages and their screenshots; exits with 77, which meson counts as
skipped, where there is no browser
"""
import pathlib
import subprocess
import sys
import tempfile

from browser import Browser, skip_unless_there

SIZES = [(1280, 800), (400, 800)]
ROWS = "document.querySelectorAll('[role=treeitem]')"


def texts(browser):
    """The names in the rows that are drawn."""
    return browser.run(f"[...{ROWS}].map(row => row.firstChild.textContent)")


def settle(browser):
    """Waits until all is drawn."""
    browser.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


def press(browser, selector, *keys):
    for key in keys:
        browser.find(selector).send_keys(key)
    settle(browser)


def click(browser, selector):
    browser.find(selector).click()
    settle(browser)


def search(browser, text):
    field = browser.find("#find")
    field.clear()
    field.send_keys(text)
    settle(browser)


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def open_page(browser, path, width=1280, height=800, dark=False):
    browser.open(path, width=width, height=height, dark=dark)
    settle(browser)


def check_folding(browser, page):
    open_page(browser, page)
    folded = ["▾ step", "▾ embed", "#0 gather", "▸ layer0 … layer11 × 12", "▾ loss", "#73 sub", "#74 square", "#75 mean"]
    equal(texts(browser), folded)
    group = f"{ROWS}[3]"
    equal(browser.run(group + ".getAttribute('aria-expanded')"), "false")
    equal(browser.run(group + ".children[1].textContent"), "72 ops")
    # A layer keeps 26 KiB: its two products keep an input and a weight each, gelu its input.
    equal(browser.run(group + ".children[2].textContent"), "312 KiB")
    browser.run(group + ".firstChild.click()")
    settle(browser)
    layers = texts(browser)
    equal([t for t in layers if t.startswith("▾ layer")][:3], ["▾ layer0 … layer11 × 12", "▾ layer0", "▾ layer1"])
    equal(browser.run("rows.length"), 8 + 12 * (1 + 2 + 1 + 4))
    click(browser, "#fold")
    equal(texts(browser), ["▸ step"])
    click(browser, "#unfold")
    equal(browser.run("rows.length"), 8 + 12 * (1 + 2 + 1 + 4))


def check_repeats(browser, page):
    """Repeats are found without scopes, too."""
    open_page(browser, page)
    equal(texts(browser), ["▸ tanh, mul, add, sin × 2500"])
    browser.run(f"{ROWS}[0].firstChild.click()")
    settle(browser)
    equal(texts(browser)[:3], ["▾ tanh, mul, add, sin × 2500", "▸ 1 of 2500", "▸ 2 of 2500"])


def check_search(browser, page):
    open_page(browser, page)
    search(browser, "matmul layer7")
    equal(texts(browser), ["#45 matmul  step/layer7/mlp", "#47 matmul  step/layer7/mlp"])
    equal(browser.find("#found").text, "2 of 76")
    search(browser, "F32[16,64] GELU")
    equal(len(texts(browser)), 12)
    search(browser, "#75")
    equal(texts(browser), ["#75 mean  step/loss"])
    search(browser, "square pages::write_step")
    equal(texts(browser), ["#74 square  step/loss"])
    search(browser, "square no_such_function")
    equal(texts(browser), [])
    browser.run("($('find').value = '', $('find').oninput())")
    settle(browser)
    equal(browser.find("#found").text, "")
    equal(len(texts(browser)), 8)


def check_panel(browser, page):
    """What an op takes and gives leads on, and the list follows."""
    def is_in_sight():
        box = "document.querySelector('[aria-selected=true]').getBoundingClientRect()"
        return browser.run(f"{box}.top >= $('head').getBoundingClientRect().bottom && {box}.bottom <= $('list').getBoundingClientRect().bottom")

    open_page(browser, page)
    browser.run("reveal(40)")
    settle(browser)
    assert is_in_sight()
    text = browser.find("#more").text
    for part in ("#40 gelu", "step/layer6/mlp", "#39 f32[16,64]", "#41", "keeps 4 KiB, frees 4 KiB", "pages::write_step(", "main"):
        assert part in text, text
    equal(browser.run("document.querySelector('[aria-selected=true]').firstChild.textContent"), "#40 gelu")
    click(browser, "#more dd button")
    equal(browser.find("#more h2").text, "#39 matmul")
    assert is_in_sight()
    click(browser, "[aria-label=Close]")
    assert not browser.find("#more").is_displayed()


def check_keys(browser, page):
    down, up, left, right, enter, home, end = "\ue015\ue013\ue012\ue014\ue007\ue011\ue010"
    open_page(browser, page)
    selected = lambda: browser.run("document.querySelector('[aria-selected=true]').firstChild.textContent")
    press(browser, "#list", down, down, down, down)
    equal(selected(), "▸ layer0 … layer11 × 12")
    equal(browser.run("$($('list').getAttribute('aria-activedescendant')).firstChild.textContent"), selected())
    press(browser, "#list", right, right, right)
    equal(selected(), "#1 mean")
    press(browser, "#list", down, left)
    equal(selected(), "▾ layer0")
    press(browser, "#list", left)
    equal(selected(), "▸ layer0")
    press(browser, "#list", left, enter)
    equal(selected(), "▸ layer0 … layer11 × 12")
    press(browser, "#list", end)
    equal(selected(), "#75 mean")
    press(browser, "#list", home, up)
    equal(selected(), "▾ step")


def check_zoom(browser, page):
    open_page(browser, page)
    whole = browser.run("span()")
    click(browser, "#in")
    assert abs(browser.run("span()") - whole / 2) < 1e-9 * whole
    press(browser, "#chart", "+")
    assert abs(browser.run("span()") - whole / 4) < 1e-9 * whole
    start = browser.run("view[0]")
    press(browser, "#chart", "\ue012")
    assert browser.run("view[0]") < start
    click(browser, "#out")
    click(browser, "#all")
    equal(browser.run("view"), [0, whole])
    # The first op of the forward pass and the last of the backward pass are the same.
    click(browser, "#unit")
    equal(browser.run("span()"), 152)
    for x in (3, -3):
        browser.run("$('more').hidden = true")
        press_at(browser, x)
        equal(browser.find("#more h2").text, "#0 gather")


def press_at(browser, x):
    """A click on the chart, x pixels from its left, or if negative from its right."""
    box = browser.run("(b => [b.left, b.right, b.top])($('chart').getBoundingClientRect())")
    at = {"x": box[0] + x if x > 0 else box[1] + x, "y": box[2] + 40, "button": "left", "clickCount": 1}
    for kind in ("mousePressed", "mouseReleased"):
        browser.command("Input.dispatchMouseEvent", type=kind, **at)
    settle(browser)


def check_size(browser, page):
    """Of 10,000 ops only the rows in sight are in the document."""
    open_page(browser, page)
    most = 0
    for step in ("unfold(true)", "list.scrollTop = 100000", "list.scrollTop = 1e9", "reveal(5000)", "zoom(0.01)", "unfold(false)"):
        browser.driver.execute_script(step)
        settle(browser)
        most = max(most, browser.run("document.querySelectorAll('*').length"))
        assert browser.run(f"{ROWS}.length > 0"), step
    search(browser, "sin")
    equal(browser.find("#found").text, "2500 of 10000")
    most = max(most, browser.run("document.querySelectorAll('*').length"))
    assert most < 600, most


def check_looks(browser, folder, name):
    """Each size, light and dark, fits its window; the backgrounds differ."""
    backgrounds = set()
    for width, height in SIZES:
        for dark in (False, True):
            open_page(browser, folder / f"{name}.html", width, height, dark)
            assert browser.overflow() <= 0, (name, width)
            equal(browser.run("document.documentElement.scrollHeight <= innerHeight"), True)
            if name in ("step", "function"):
                browser.run("reveal(%d)" % (40 if name == "step" else 7))
                settle(browser)
            backgrounds.add(browser.run("getComputedStyle(document.body).backgroundColor"))
            browser.screenshot(folder / f"{name}-{width}-{'dark' if dark else 'light'}.png")
            browser.check_console()
    equal(len(backgrounds), 2)


def check_function(browser, page):
    """A page of a compiled function has one pass; groups are lines that unfold."""
    open_page(browser, page)
    assert browser.find("h1").text == "train(f32[128,32], f32[128,8])", browser.find("h1").text
    equal(browser.run("document.title"), browser.find("h1").text)
    for part in ("nodes, ", "writes ", "arena ", "steps "):
        assert part in browser.find("#sum").text, browser.find("#sum").text
    equal(browser.run("[...$('head').children].filter(e => e.offsetParent).map(e => e.textContent)"),
          ["node", "inputs → outputs", "writes", "time", "memory"])
    click(browser, "#unfold")
    nodes = browser.run("ops.length")
    equal(browser.run("rows.filter(r => r.op).length"), nodes)
    assert browser.run("rows.filter(r => !r.op && r.name.startsWith('group ')).length") >= 4
    search(browser, "registers")
    assert 0 < len(texts(browser)) < nodes
    search(browser, "tanh group")
    browser.run(f"{ROWS}[0].click()")
    settle(browser)
    for part in ("tanh", "Memory", "of the arena in use"):
        assert part in browser.find("#more").text, browser.find("#more").text
    click(browser, "[aria-label=Close]")
    # The chart has each node once: its last pixels are the last node.
    click(browser, "#unit")
    for x, node in ((3, 0), (-3, nodes - 1)):
        press_at(browser, x)
        assert browser.find("#more h2").text.startswith(f"#{node} "), browser.find("#more h2").text


def check_hostile(browser, page):
    open_page(browser, page)
    equal(browser.run("document.scripts.length"), 2)
    equal(browser.run("ops[0].name"), "exp")
    assert browser.run("sources[0].name").startswith("</script><script>console.error('escaped')</script><!--\"'&amp;\\u003c\ufffd\n\t")
    assert "</script>" in browser.run("document.body.textContent")


def main(program, kept=None):
    skip_unless_there()
    with tempfile.TemporaryDirectory() as temporary, Browser() as browser:
        folder = pathlib.Path(kept or temporary)
        folder.mkdir(exist_ok=True)
        subprocess.run([program, folder], check=True)
        for name in ("step", "long", "function", "hostile", "empty"):
            check_looks(browser, folder, name)
        step, long = folder / "step.html", folder / "long.html"
        for check, page in ((check_folding, step), (check_repeats, long), (check_search, step), (check_panel, step), (check_keys, step),
                            (check_zoom, step), (check_size, long), (check_function, folder / "function.html"), (check_hostile, folder / "hostile.html")):
            check(browser, page)
            browser.check_console()


if __name__ == "__main__":
    main(*sys.argv[1:])
