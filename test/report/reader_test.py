#!/usr/bin/python3
"""The reader of logs and the server of scripts/report; page_test.py has the page."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from report import SCRIPT, Serving, line, report  # noqa: E402


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "log.jsonl"


class Reader(InFolder):
    """A client that asks again with what it was told."""

    def setUp(self):
        super().setUp()
        self.log = report.Log(str(self.path), "log")
        self.at, self.mark = 0, ""

    def news(self, **options):
        answer = self.log.news(self.at, self.mark, **options)
        self.at, self.mark = answer["at"], answer["mark"]
        return answer

    def expect(self, text, anew=False, problem=""):
        answer = self.news()
        self.assertEqual((answer["text"], answer["anew"], answer["problem"]), (text, anew, problem))

    def test_only_what_is_new(self):
        self.path.write_text("1\n2\n")
        self.expect("1\n2\n")
        self.expect("")
        with self.path.open("a") as file:
            file.write("3\n")
        self.expect("3\n")

    def test_an_incomplete_line_waits(self):
        self.path.write_text('{"a": 1}\n{"a"')
        self.expect('{"a": 1}\n')
        self.expect("")
        with self.path.open("a") as file:
            file.write(": 2}\n")
        self.expect('{"a": 2}\n')

    def test_a_file_that_comes_later_and_goes(self):
        missing = "there is no such file yet"
        self.expect("", problem=missing)
        self.path.write_text("1\n")
        self.expect("1\n")
        self.path.unlink()
        self.expect("", problem=missing)
        self.path.write_text("1\n2\n")
        self.expect("2\n")

    def test_truncated_and_replaced(self):
        self.path.write_text("1\n2\n")
        self.expect("1\n2\n")
        self.path.write_text("1\n")
        self.expect("1\n", anew=True)
        self.path.write_text("")
        self.expect("", anew=True)
        self.path.write_text("5\n")
        self.expect("5\n")

    def test_replaced_by_a_longer_file(self):
        for size in (2, report.MARKED - 1, report.MARKED, 5 * report.MARKED):
            for place in (0, size - 2):
                with self.subTest(size=size, place=place):
                    self.at, self.mark = 0, ""
                    self.path.write_text("1" * (size - 1) + "\n")
                    self.news()
                    other = ("1" * place + "2").ljust(size - 1, "1") + "\n" + "3\n"
                    self.path.write_text(other)
                    self.expect(other, anew=True)

    def test_parts(self):
        lines = [f'{{"step": {i}}}\n' for i in range(1000)]
        self.path.write_text("".join(lines))
        text, count = "", 0
        while True:
            answer = self.news(most=1000)
            self.assertLessEqual(len(answer["text"]), 1000)
            text += answer["text"]
            count += 1
            if not answer["more"]:
                break
        self.assertEqual(text, "".join(lines))
        self.assertEqual(count, 14)   # of 13,890 bytes
        self.assertEqual(self.log.all()["text"], text)

    def test_a_line_longer_than_a_part(self):
        self.path.write_text("x" * 250 + "\n1\n")
        texts = []
        while not texts or answer["more"]:
            answer = self.news(most=100)
            texts.append(answer["text"])
        self.assertEqual(texts, ["x" * 100, "x" * 100, "x" * 50 + "\n1\n"])

    def test_bytes_that_are_no_text(self):
        self.path.write_bytes(b'{"a": "\xff\x00"}\n')
        self.expect('{"a": "\ufffd\0"}\n')

    def test_what_is_no_file(self):
        self.path.mkdir()
        self.assertEqual(self.news()["problem"], "Is a directory")
        os.mkfifo(self.folder / "pipe")
        self.assertEqual(report.Log(str(self.folder / "pipe"), "").news()["problem"], "this is no file")


class Names(unittest.TestCase):
    def test_what_differs(self):
        for paths, names in [
            (["a/run.jsonl"], ["run"]),
            (["mlp.jsonl", "cnn.jsonl"], ["mlp", "cnn"]),
            (["lr0.1", "lr0.01.jsonl"], ["lr0.1", "lr0.01"]),
            (["runs/a/log.jsonl", "runs/b/log.jsonl"], ["a", "b"]),
            (["a", "a/b"], ["a", "a/b"]),
            (["a.jsonl", "a.jsonl"], ["a", "a (2)"]),
            (["x/a.jsonl", "y/b.jsonl"], ["x/a", "y/b"]),
        ]:
            with self.subTest(paths):
                self.assertEqual(report.short_names(paths), names)


class Served(InFolder):
    def get(self, server, target, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def lines(self, server, *places):
        status, body = self.get(server, f"/lines?session={server.session}" + "".join(f"&at={place}" for place in places))
        return json.loads(body) if status == 200 else status

    def test_news_of_each_log(self):
        self.path.write_text(line(step=1))
        with Serving(self.path, self.folder / "later.jsonl") as server:
            first, later = self.lines(server, "0.", "0.")
            self.assertEqual(first["text"], line(step=1))
            self.assertEqual(later["problem"], "there is no such file yet")
            with self.path.open("a") as file:
                file.write(line(step=2))
            again, _ = self.lines(server, f"{first['at']}.{first['mark']}", "0.")
            self.assertEqual(again["text"], line(step=2))

    def test_wrong_questions(self):
        self.path.write_text(line(step=1))
        with Serving(self.path) as server:
            for places in ([], ["0.", "0."], ["-1."], ["x"], ["0"], ["0.zz"], ["9" * 30 + "."], ["\u0663."]):
                with self.subTest(places):
                    self.assertEqual(self.lines(server, *map(report.urllib.parse.quote, places)), 400)
            self.assertEqual(self.get(server, "/lines?session=other&at=0.")[0], 410)
            self.assertEqual(self.get(server, "/lines?at=0.")[0], 410)

    def test_nothing_else_is_served(self):
        self.path.write_text(line(step=1))
        with Serving(self.path) as server:
            for target in ("/log.jsonl", str(self.path), "/../log.jsonl", "/%2e%2e/etc/passwd", "/lines/", "/report", f"/lines?path={self.path}&session=", "/favicon.ico"):
                with self.subTest(target):
                    self.assertIn(self.get(server, target)[0], (404, 410))

    def test_loopback_only(self):
        self.path.write_text(line(step=1))
        with Serving(self.path) as server:
            self.assertEqual(server.server_address[0], "127.0.0.1")
            for host, status in (("127.0.0.1", 200), (f"localhost:{server.server_port}", 200), ("localhost", 200), ("evil.example", 403), ("evil.example:80", 403), ("", 403)):
                with self.subTest(host):
                    self.assertEqual(self.get(server, "/", Host=host)[0], status)

    def test_names_are_no_markup(self):
        hostile = "</script><script>alert(1)<!--"
        path = self.folder / (hostile.replace("/", "\u2215") + ".jsonl")
        path.write_text(line(**{hostile: 1}))
        with Serving(path, x=hostile, kind="<b>") as server:
            page = self.get(server, "/")[1].decode()
        self.assertEqual(page.count("</script"), 2)
        self.assertEqual(len(re.findall("<script", page)), 2)
        page = self.folder / "page.html"
        report.write_page(page, [report.Log(str(path), hostile)], {"x": None, "kind": None})
        self.assertEqual(page.read_text().count("</script"), 2)
        self.assertNotIn("<!--", page.read_text())

    def test_a_name_that_is_no_text(self):
        path = os.fsdecode(os.fsencode(self.folder) + b"/\xff.jsonl")
        with Serving(path) as server:
            self.assertIn('"\\ufffd"', self.get(server, "/")[1].decode())


class Program(InFolder):
    def run_script(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=300)

    def test_it_writes_a_page(self):
        self.path.write_text(line(step=1, loss=0.5) + '{"step": 2')
        page = self.folder / "page.html"
        for _ in range(2):   # the second time over the first page
            done = self.run_script("--html", page, self.path)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.S)[1])
        self.assertEqual(data["names"], ["log"])
        self.assertEqual(data["logs"][0]["text"], line(step=1, loss=0.5))

    def test_it_replaces_no_log(self):
        self.path.write_text(line(step=1))
        done = self.run_script("--html", self.path, self.path)
        self.assertEqual((done.returncode, done.stderr), (1, f"report: {self.path} is no HTML page; it is not replaced\n"))
        self.assertEqual(self.path.read_text(), line(step=1))

    def test_errors(self):
        self.assertEqual(self.run_script().returncode, 2)
        self.assertEqual(self.run_script("--port", "65536", "a").returncode, 2)
        self.assertIn("No such file", self.run_script("--html", self.folder / "no" / "page.html", SCRIPT).stderr)
        done = self.run_script("--html", self.folder / "page.html", self.folder / "none")
        self.assertEqual((done.returncode, done.stderr), (1, f"report: there is no {self.folder / 'none'}\n"))
        self.assertFalse((self.folder / "page.html").exists())
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as other:
            done = self.run_script("--port", str(other.getsockname()[1]), "a")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("Address already in use", done.stderr)

    def test_it_serves_until_it_is_interrupted(self):
        self.path.write_text(line(step=1))
        with subprocess.Popen([SCRIPT, self.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            url = process.stdout.readline().split()[0]
            with contextlib.closing(http.client.HTTPConnection(url.split("/")[2], timeout=60)) as connection:
                connection.request("GET", "/")
                self.assertIn(b"<!doctype html>", connection.getresponse().read())
            process.send_signal(2)
            self.assertEqual(process.communicate(timeout=60), ("", ""))
            self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(stream=sys.stdout))
