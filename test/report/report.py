"""scripts/report as a module, for its tests."""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import threading

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/report"
loader = importlib.machinery.SourceFileLoader("report", str(SCRIPT))
report = importlib.util.module_from_spec(importlib.util.spec_from_loader("report", loader))
loader.exec_module(report)


class Serving:
    """A server of logs, on a thread while it is entered."""

    def __init__(self, *paths, x=None, kind=None):
        paths = [str(path) for path in paths]
        logs = [report.Log(path, name) for path, name in zip(paths, report.short_names(paths))]
        self.server = report.Server(0, logs, {"x": x, "kind": kind})

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self.server

    def __exit__(self, *error):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def line(**fields):
    return json.dumps(fields) + "\n"
