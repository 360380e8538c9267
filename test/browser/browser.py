"""Headless Chromium for tests of pages, by Debian's python3-selenium and chromium-driver; for /usr/bin/python3.

    with Browser() as browser:
        page = browser.open(path_or_url, width=400, dark=True)
        browser.wait("document.querySelectorAll('.row').length == 3")
        browser.check_console()
        browser.screenshot("page.png")
"""
import base64
import os
import pathlib
import sys
import time

NEEDED = ["chromium", "chromium-driver", "python3-selenium"]
try:
    import selenium.webdriver
except ImportError:
    selenium = None


def skip_unless_there():
    """Ends the test as skipped, or as failed in CI, if there is no browser."""
    if selenium and all(pathlib.Path("/usr/bin", name).exists() for name in ("chromium", "chromedriver")):
        return
    print(f"skipped: a page in a browser: install {' '.join(NEEDED)}")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)


class Browser:
    def __init__(self):
        skip_unless_there()
        options = selenium.webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-device-scale-factor=1", "--no-first-run", "--disable-background-networking"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = selenium.webdriver.Chrome(service=selenium.webdriver.chrome.service.Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_page_load_timeout(120)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.driver.quit()

    def command(self, name, **arguments):
        return self.driver.execute_cdp_cmd(name, arguments)

    def open(self, page, width=1280, height=900, dark=False):
        """Loads a file or a URL in a window of that size, in pixels."""
        self.driver.get_log("browser")
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page = str(page)
        self.driver.get(page if "://" in page else pathlib.Path(page).resolve().as_uri())

    def run(self, expression):
        """The value of a JavaScript expression."""
        return self.driver.execute_script(f"return ({expression})")

    def wait(self, condition, seconds=60):
        """Until a JavaScript expression holds. The limit is for failures: a busy machine does not reach it."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}")
            time.sleep(0.02)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def errors(self):
        """What the page has written to the console as errors or warnings since it was opened."""
        return [f"{e['level']}: {e['message']}" for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]

    def check_console(self):
        found = self.errors()
        assert not found, f"{self.driver.current_url}: {found}"

    def overflow(self):
        """By how many pixels the page is wider than its window."""
        return self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def screenshot(self, path, whole=False):
        """A PNG of the window, or of the whole page."""
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(data["data"]))
