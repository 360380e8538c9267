#!/usr/bin/python3
"""The page of scripts/report in headless Chromium, live and as a file. Exits with 77, which meson counts as skipped, where there is
no browser.

usage: page_test.py [--screenshots FOLDER]    keeps pictures of the page there
"""
import json
import math
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "browser"))
from browser import Browser, skip_unless_there  # noqa: E402
from report import Serving, line, report  # noqa: E402
skip_unless_there()
from selenium.webdriver import ActionChains, Keys  # noqa: E402

PICTURES = None   # where to


def train(path, steps=100, rate=0.05, first=0, kinds=True):
    with path.open("a") as file:
        if first == 0:
            file.write(line(model=path.stem, learning_rate=rate, shuffle=True))
        for step in range(first, steps):
            loss = 2 * math.exp(-rate * step) + 0.1
            file.write(line(**({"kind": "train"} if kinds else {}), step=step, loss=loss, accuracy=1 - loss / 3))
            if kinds and step % 10 == 9:
                file.write(line(kind="test", step=step, loss=loss + 0.1))


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(Browser())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tearDown(self):
        self.browser.check_console()

    def open(self, *paths, options=None, **how):
        """The page of these logs as they are now."""
        page = self.folder / "page.html"
        report.write_page(page, [report.Log(str(path), path.stem) for path in paths], {"x": None, "kind": None, **(options or {})})
        self.browser.open(page, **how)
        self.drawn()

    def serve(self, *paths):
        serving = Serving(*paths)
        server = serving.__enter__()
        self.addCleanup(serving.__exit__)
        self.addCleanup(self.browser.driver.get, "about:blank")   # asks no longer
        self.browser.open(server.url)

    def drawn(self):
        self.wait("document.querySelector('path.curve')")

    def run_js(self, expression):
        return self.browser.run(expression)

    def wait(self, condition):
        self.browser.wait(condition)

    def curves(self, field, which="curve"):
        """The lines of a chart, as the numbers of their points."""
        return [len([c for c in d if c in "ML"]) for d in self.run_js(f"[...document.querySelectorAll('[data-field={json.dumps(field)}] path.{which}')].map(path => path.getAttribute('d'))")]

    def texts(self, selector):
        return self.run_js(f"[...document.querySelectorAll({json.dumps(selector)})].map(element => element.textContent)")

    def log(self, name, *lines):
        path = self.folder / f"{name}.jsonl"
        path.write_text("".join(text if isinstance(text, str) else line(**text) for text in lines))
        return path

    def test_a_chart_per_field_and_a_curve_per_run_and_kind(self):
        a, b = self.folder / "mlp.jsonl", self.folder / "cnn.jsonl"
        train(a), train(b, rate=0.1)
        self.open(a, b)
        self.assertEqual(self.texts("figcaption h3"), ["loss", "accuracy"])
        self.assertEqual(self.curves("loss"), [100, 10, 100, 10])
        self.assertEqual(self.curves("accuracy"), [100, 100])
        colours = "[...document.querySelectorAll('path.curve')].map(path => getComputedStyle(path).stroke + path.dataset.run)"
        self.assertEqual(len(set(self.run_js(colours))), 2)
        self.assertEqual(self.run_js("document.querySelectorAll('path.curve[stroke-dasharray]:not([stroke-dasharray=\"\"])').length"), 2)
        self.assertEqual(self.texts("#runs bdi"), ["mlp", "cnn"])
        self.assertEqual(self.texts("#kinds bdi"), ["train", "test"])
        self.assertEqual(self.texts("#settings tbody th"), ["learning_rate", "model", "shuffle"])
        self.assertEqual(self.texts("#settings tbody td"), ["0.05", "0.1", "mlp", "cnn", "true", "true"])
        rows = self.texts("#values tbody:first-of-type tr:not(.field) td")
        self.assertEqual(rows[:4], [f"{2 * math.exp(-0.05 * 99) + 0.1:.5g}", "99"] * 2)
        self.assertEqual(self.texts("#values .field button"), ["best: lowest", "best: highest"])

    def test_lines_that_come_while_it_is_open(self):
        log = self.folder / "log.jsonl"
        self.serve(log)
        self.wait("document.querySelector('#runs .note').textContent == 'there is no such file yet'")
        train(log, 50, kinds=False)
        self.wait("document.querySelector('path.curve')?.dataset.points == '50'")
        with log.open("a") as file:
            file.write('{"step": 50, ')
        train_rest = '"loss": 0.01, "accuracy": 1, "new field": 3}\n'
        with log.open("a") as file:
            file.write(train_rest)
        self.wait("document.querySelector('path.curve').dataset.points == '51'")
        self.assertEqual(self.texts("figcaption h3"), ["loss", "accuracy", "new field"])
        self.assertEqual(self.texts("#values td")[:4], ["0.01", "50", "0.01", "50"])
        self.assertIn("live", self.texts("#status")[0])
        log.write_text(line(step=0, other=1))
        self.wait("document.querySelector('figcaption h3').textContent == 'other'")
        self.assertEqual(self.texts("#runs .note"), ["1 line"])

    def test_a_page_of_an_earlier_server_loads_the_new_one(self):
        first, second = self.log("first", {"loss": 1}), self.log("second", {"loss": 2})
        serving = Serving(first)
        with serving as server:
            self.addCleanup(self.browser.driver.get, "about:blank")
            self.browser.open(server.url)
            self.wait("document.querySelector('#runs bdi')?.textContent == 'first'")
            server.session, server.page = "0", server.page.replace(b'"first"', b'"other"').replace(server.session.encode(), b"0")
            self.wait("document.querySelector('#runs bdi')?.textContent == 'other'")
            self.browser.errors()   # of the answer 410
        self.assertTrue(second.exists())

    def test_switches(self):
        a, b = self.folder / "a.jsonl", self.folder / "b.jsonl"
        train(a), train(b)
        self.open(a, b)
        find = self.browser.find
        find("#runs li:last-child input").click()
        self.wait("document.querySelectorAll('path.curve').length == 3")
        self.assertEqual(self.run_js("[...new Set([...document.querySelectorAll('path.curve')].map(path => path.dataset.run))]"), ["0"])
        find("#kinds li:last-child input").click()
        self.wait("document.querySelectorAll('path.curve').length == 2")
        before = self.run_js("document.querySelector('path.curve').getAttribute('d')")
        find(".chart button").click()
        self.assertEqual(find(".chart button").get_attribute("aria-pressed"), "true")
        self.assertNotEqual(self.run_js("document.querySelector('path.curve').getAttribute('d')"), before)
        # 2 exp(-t/20) + 0.1 falls from 2.1 to 0.1142.
        self.assertEqual(self.texts("[data-field=loss] .grid text[text-anchor=end]"), ["0.1", "0.2", "0.5", "1", "2"])
        find("#smoothing").send_keys(Keys.END)
        self.wait("document.querySelectorAll('path.raw').length == 2")
        find("#filter").send_keys("acc")
        self.wait("document.querySelectorAll('.chart').length == 1")
        self.assertEqual(self.texts("figcaption h3"), ["accuracy"])
        find("#values .field button").click()
        self.assertEqual(self.texts("#values .field button"), ["best: lowest"])
        self.assertEqual(self.run_js("document.activeElement.textContent"), "best: lowest")
        find("#axis").send_keys("number")
        self.wait("document.querySelector('#values thead').textContent.includes('at line')")

    def test_zoom_and_values(self):
        log = self.folder / "log.jsonl"
        train(log, 100, kinds=False)
        self.open(log)
        svg = self.browser.find(".plot svg")
        ActionChains(self.browser.driver).move_to_element_with_offset(svg, -60, 0).click_and_hold().move_by_offset(60, 0).perform()
        self.assertEqual(self.run_js("document.querySelectorAll('.brush').length"), 1)
        ActionChains(self.browser.driver).release().perform()
        self.wait("document.querySelector('path.curve').dataset.points < 30")
        self.assertEqual(len(set(self.run_js("[...document.querySelectorAll('path.curve')].map(path => path.dataset.points)"))), 1)   # in all charts
        self.browser.find("#reset").click()
        self.wait("document.querySelector('path.curve').dataset.points == '100'")
        svg.send_keys(Keys.HOME)
        self.assertEqual(self.texts(".tip:not([hidden])"), ["step 0log2.1"])
        svg.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual(self.texts(".tip:not([hidden])"), [f"step 2log{2 * math.exp(-0.1) + 0.1:.5g}"])
        self.assertEqual(self.run_js("document.querySelectorAll('path.cursor').length"), 2)   # in all charts
        svg.send_keys(Keys.END, Keys.ARROW_LEFT)
        self.assertIn("step 98", self.texts(".tip:not([hidden])")[0])
        svg.send_keys("+")
        self.wait("!document.querySelector('#reset').disabled")
        svg.send_keys(Keys.ESCAPE)
        self.wait("document.querySelector('#reset').disabled")
        ActionChains(self.browser.driver).move_to_element(svg).perform()
        self.assertIn("step ", self.texts(".tip:not([hidden])")[0])

    def test_unusual_lines(self):
        log = self.log("log", {"step": 0, "loss": 1}, "no JSON\n", "[1]\n", "3\n", "\n", {"step": 1, "loss": None}, '{"step": 2, "loss": NaN, "text": ", NaN"}\n',
                       {"step": 3, "loss": 4, "nested": {"a": [1]}}, '{"step": 4, "loss": 1e999}\n', {"loss": 5}, {"loss": None}, {"step": 5, "loss": -2, "text": "é"})
        self.open(log)
        self.assertEqual(self.texts("#runs .note"), ["8 lines \u00b7 3 unreadable"])
        self.assertEqual(self.curves("loss"), [4])   # steps 0, 3, 4 and 5
        self.assertEqual(self.run_js("document.querySelector('path.curve').getAttribute('d').split('M').length - 1"), 4)   # each a piece of its own
        self.assertEqual(self.curves("loss", "lost"), [3])   # crosses
        self.browser.find(".chart button").click()
        self.assertEqual(self.curves("loss"), [3])
        self.assertEqual(self.texts(".chart .note"), ["values \u2264 0 are not shown"])
        self.assertEqual(self.texts("#settings tbody td"), ["\u00e9", '{"a":[1]}'])

    def test_a_run_that_goes_on_from_a_checkpoint(self):
        log = self.log("log", *({"step": step, "loss": step} for step in range(10)), *({"step": step, "loss": -step} for step in range(6, 12)))
        self.open(log)
        self.assertEqual(self.run_js("report.runs[0].series.get('loss').get('').y"), [*range(7), *range(-6, -12, -1)])
        self.assertIn("went back; 3 points replaced", self.texts("#runs .note")[0])

    def test_axes(self):
        lines = [{"epoch": i // 2, "seconds": i / 4, "loss": i} for i in range(8)]
        x = "report.runs[0].series.get('loss').get('').x"
        self.open(self.log("log", *lines))
        self.assertEqual(self.run_js(x), [0, 0, 1, 1, 2, 2, 3, 3])
        self.open(self.log("log", *lines), options={"x": "seconds"})
        self.assertEqual(self.run_js(x), [i / 4 for i in range(8)])
        self.open(self.log("log", *({"loss": i} for i in range(3))))
        self.assertEqual(self.run_js(x), [1, 2, 3])
        # What has no step of its own is at the last one; what comes before the first is a setting.
        self.open(self.log("log", {"rate": 0.1}, {"step": 5, "loss": 1}, {"loss": 2, "test loss": 3}))
        self.assertEqual(self.run_js(x), [5, 5])
        self.assertEqual(self.texts("#settings tbody td"), ["0.1"])
        self.open(self.log("log", {"part": "a", "loss": 1}, {"part": "b", "loss": 2}), options={"kind": "part"})
        self.assertEqual(self.curves("loss"), [1, 1])

    def test_hostile_names(self):
        names = ["</script><script>document.title='hacked'</script>", "<img src=x onerror=document.title='hacked'>", "__proto__", "constructor", "{{data}}", "\u202eabc", "a" * 5000, '"]', ""]
        fields = "{" + ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in zip(names, range(9))) + "}\n"
        texts = "{" + ", ".join(f"{json.dumps(name)}: {json.dumps(name)}" for name in names) + "}\n"
        for width in (1280, 400):
            self.open(self.log("log", fields, fields, texts), width=width)
            self.assertEqual(self.texts("figcaption h3"), names)
            self.assertEqual(self.run_js("document.title"), "log \u2013 training report")
            self.assertEqual(self.run_js("document.querySelectorAll('img, main script').length"), 0)
            self.assertLessEqual(self.browser.overflow(), 0)
        self.assertEqual(sorted(self.texts("#settings tbody td")), sorted(name if len(name) < 300 else name[:300] + "\u2026" for name in names))

    def test_extreme_numbers(self):
        for values in ([1e308, -1e308], [5e-324, 0], [7, 7], [0, 0], [1e15, 1e15 + 1], [-5], [1e-300, 1e300], [1e308, 1.5e308], [5e-324, 1e-320]):
            for logarithmic in (False, True):
                with self.subTest(values=values, logarithmic=logarithmic):
                    self.open(self.log("log", *({"step": x, "loss": y} for x, y in zip(reversed([-value / 2 for value in values]), values))))
                    if logarithmic:
                        self.browser.find(".chart button").click()
                    self.assertEqual(self.run_js("document.querySelector('.plot svg').outerHTML.match(/NaN|Infinity/)"), None)

    def test_many_points_few_elements(self):
        count = 100_000
        runs = []
        for name in ("a", "b"):
            path = self.folder / f"{name}.jsonl"
            path.write_text("".join(f'{{"step":{i},"loss":{100 if i == 54321 else i % 7 if i != 777 else -50},"holes":{"null" if i % 2 else i},"back":{i}}}\n' for i in range(count)))
            runs.append(path)
        self.serve(*runs)
        self.wait(f"report.runs.every(run => run.lines == {count}) && document.querySelectorAll('path.curve').length == 6")
        self.wait("!report.waiting")
        width = self.run_js("document.querySelector('.plot').clientWidth")
        for field, most in (("loss", 4), ("holes", 4), ("back", 2)):
            for points in self.curves(field):
                self.assertTrue(width / 3 < points <= most * (width + 2), (field, points, width))
        self.assertLess(self.run_js("document.querySelectorAll('*').length"), 400)
        self.assertLess(self.run_js("Math.max(...[...document.querySelectorAll('path')].map(path => path.getAttribute('d').length))"), 80 * width)
        # The only points at -50 and 100 are there: the curve reaches from below to above all others.
        self.assertEqual(self.texts("#values td")[:4], ["4", "99,999", "\u221250", "777"])
        ys = self.run_js("(path => path.getAttribute('d').match(/,[\\d.]+/g).map(y => Number(y.slice(1))).sort((a, b) => a - b))(document.querySelector('path.curve'))")
        self.assertGreater(ys[1] - ys[0], 50)
        self.assertGreater(ys[-1] - ys[-2], 25)

    def test_many_fields(self):
        self.open(self.log("log", {f"field {i}": i for i in range(500)}))
        self.assertEqual(self.run_js("document.querySelectorAll('.chart').length"), 60)
        self.assertIn("440 more fields", self.texts("#more")[0])
        self.browser.find("#filter").send_keys("field 49")
        self.wait("document.querySelectorAll('.chart').length == 11")

    def test_looks(self):
        a, b = self.folder / "mlp.jsonl", self.folder / "cnn.jsonl"
        train(a), train(b, rate=0.1)
        for width in (1280, 400):
            for dark in (False, True):
                self.open(a, b, width=width, dark=dark)
                self.wait("document.querySelectorAll('path.curve').length == 6")
                self.assertLessEqual(self.browser.overflow(), 0)
                if PICTURES:
                    self.browser.screenshot(PICTURES / f"report-{width}-{'dark' if dark else 'light'}.png", whole=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--screenshots"]:
        PICTURES = pathlib.Path(sys.argv[2])
        del sys.argv[1:3]
    unittest.main(testRunner=unittest.TextTestRunner(stream=sys.stdout))
