# SPDX-License-Identifier: Apache-2.0
"""The agent's page in headless Chromium. Usage: status_page_test.py MADE_UP_AGENT MAKE_PROFILE"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "html"))
import browser as browsers

READY = "performance.getEntriesByName('pyrometer-ready')[0]?.startTime"
LIVE = "document.getElementById('live').innerText"

made_up_agent = None
flame_graph = None


class StatusPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(browsers.Browser())
        cls.agent = cls.enterClassContext(subprocess.Popen(
            [made_up_agent, flame_graph], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        cls.addClassCleanup(cls.agent.stdin.close)
        cls.origin = "http://" + cls.agent.stdout.readline().strip()

    def setUp(self):
        self.become("well")

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def become(self, state):
        """-> which flame graph was asked for last: "60 pod=web-0\""""
        self.agent.stdin.write(state + "\n")
        self.agent.stdin.flush()
        return self.agent.stdout.readline().strip()

    def open(self, path="/"):
        self.browser.open("about:blank")
        self.browser.open(self.origin + path)
        self.browser.wait_for(f"location.href === {json.dumps(self.origin + path)} && "
                              "document.readyState === 'complete'")

    def text(self):
        return self.browser.evaluate(LIVE)

    def look(self, name, width=1400, height=1000, scheme="light"):
        """Writes a picture for a person to look at, if one asks for it."""
        directory = os.environ.get("PYROMETER_SCREENSHOTS")
        if not directory:
            return
        self.browser.call("Emulation.setEmulatedMedia",
                          features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                          deviceScaleFactor=1, mobile=width < 500)
        self.browser.evaluate("new Promise((done) => requestAnimationFrame(() => "
                              "requestAnimationFrame(done)))")
        picture = self.browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        pathlib.Path(directory, f"{name}.png").write_bytes(base64.b64decode(picture))
        self.browser.call("Emulation.clearDeviceMetricsOverride")
        self.browser.call("Emulation.setEmulatedMedia", features=[])

    def test_says_what_is_sampled_and_where_it_goes(self):
        self.open()
        text = self.text()
        for part in ("99 Hz", "everything", "cluster=blue, zone=a&b", "412,345,678", "3,021",
                     "stack_map_full 912", "no unwind information 80,012", "pyroscope",
                     "/var/lib/pyrometer/profiles", "731.0 MiB", "no healthy ingester",
                     "2026-11-22 11:00:00 UTC", "0.4 % of a core", "61.0 MiB"):
            self.assertIn(part, text)
        self.assertNotIn("attention", text)
        self.look("well-light")
        self.look("well-dark", scheme="dark")

    def test_says_what_is_wrong_at_the_top(self):
        self.become("ill")
        self.open()
        warnings = self.browser.evaluate("document.querySelector('#live .warnings').innerText")
        for part in ("49 Hz instead of 99 Hz", "spool's disk is full", "of all ticks were lost",
                     "Nothing arrives at parca", "pyroscope is behind by 1 min 12 s",
                     "12,422 samples for parca"):
            self.assertIn(part, warnings)
        for name, width, scheme in (("ill-light", 1400, "light"), ("ill-dark", 1400, "dark"),
                                    ("ill-phone", 390, "dark")):
            self.look(name, width=width, scheme=scheme)

    def test_hostile_strings_are_text(self):
        self.become("ill")
        self.open()
        self.assertEqual(self.browser.evaluate("document.title"),
                         "Pyrometer on node-7.<i>example</i>")
        self.assertEqual(
            self.browser.evaluate("document.querySelectorAll('img, b, main i:not([class]), "
                                  "#live script').length"), 0)
        self.assertIn("<img src=x onerror", self.text())
        self.assertIn("</section><script>", self.text())

    def test_follows_the_agent_by_itself(self):
        self.open()
        self.assertNotIn("attention", self.text())
        self.become("ill")
        self.browser.wait_for(f"{LIVE}.includes('Needs attention')")
        self.become("well")
        self.browser.wait_for(f"!{LIVE}.includes('Needs attention')")

    def test_asks_nobody_but_the_agent(self):
        self.open()
        self.become("ill")
        self.browser.wait_for(f"{LIVE}.includes('Needs attention')")
        foreign = [url for url in self.browser.requests
                   if not url.startswith((self.origin, "data:"))]
        self.assertEqual(foreign, [])

    def test_the_policy_stops_foreign_scripts_and_requests(self):
        self.open()
        self.browser.evaluate("fetch('https://example.invalid/').catch(() => null)")
        self.browser.evaluate("(() => { const s = document.createElement('script'); s.textContent "
                              "= 'document.title = \"injected\"'; document.body.append(s); })()")
        self.assertNotEqual(self.browser.evaluate("document.title"), "injected")
        errors = list(self.browser.errors)
        self.browser.errors.clear()
        for refused in errors:
            self.assertIn("Content Security Policy", refused)
        for what in ("https://example.invalid/", "inline script"):
            self.assertTrue(any(what in error for error in errors), what)

    def test_the_flame_graph_is_a_stranger_to_the_page(self):
        self.open()
        frame = self.browser.evaluate(
            "(() => { const f = document.querySelector('iframe'); return {sandbox: "
            "f.sandbox.value, reachable: f.contentDocument !== null}; })()")
        self.assertEqual(frame, {"sandbox": "allow-scripts", "reachable": False})
        self.open("/flamegraph?seconds=60")  # and so it is in a tab of its own
        self.browser.wait_for(READY)
        self.assertEqual(self.browser.evaluate("origin"), "null")
        self.assertGreater(
            self.browser.evaluate("document.querySelectorAll('#flame g.frame').length"), 20)

    def choose(self, select, value):
        self.browser.evaluate("(() => { const s = document.querySelector(%s); s.value = %s; s.dispatchEvent("
                              "new Event('change', {bubbles: true})); })()" % (
                                  json.dumps("#which " + select), json.dumps(value)))  # fmt: skip

    def await_asked(self, query):
        deadline = time.monotonic() + 60
        while (asked := self.become("well")) != query:
            self.assertLess(time.monotonic(), deadline, asked)

    def test_another_span_or_label_is_a_click_away(self):
        self.open()
        self.await_asked("300")
        self.choose("select[name=seconds]", "900")
        self.await_asked("900")
        self.choose("label[data-name=pod] select", "pod=db-0")
        self.choose("label[data-name=namespace] select", "namespace=shop")
        self.await_asked("900 namespace=shop, pod=db-0")
        alone = self.browser.evaluate("document.getElementById('alone').href")
        self.assertTrue(alone.endswith("?seconds=900&label=namespace%3Dshop&label=pod%3Ddb-0"), alone)
        self.choose("label[data-name=pod] select", 'pod="><b>pod</b>')
        self.await_asked('900 namespace=shop, pod="><b>pod</b>')
        self.look("filtered")
        # What was chosen stays, though the page asks for itself.
        self.become("ill")
        self.browser.wait_for(f"{LIVE}.includes('Needs attention')")
        self.assertEqual(self.browser.evaluate("new URLSearchParams(new FormData(which)).toString()"),
                         "seconds=900&label=namespace%3Dshop&label=pod%3D%22%3E%3Cb%3Epod%3C%2Fb%3E")
        self.assertIn("and 1,234 more", self.browser.evaluate("which.innerText"))

    def test_the_control_in_use_keeps_the_focus_and_its_list(self):
        self.open()
        pods = "[...document.querySelector('label[data-name=pod] select').options].map((o) => o.text).join()"
        before = self.browser.evaluate(pods)
        self.browser.evaluate("document.querySelector('label[data-name=pod] select').focus()")
        self.choose("label[data-name=pod] select", "pod=db-0")
        self.become("ill")
        self.browser.wait_for("document.querySelector('option[value=\"namespace=new\"]') !== null")
        self.assertEqual(self.browser.evaluate(pods), before)
        self.assertEqual(self.browser.evaluate("document.activeElement.closest('label').dataset.name"), "pod")
        # Of what a browser keeps across a reload the flame graph would know nothing.
        self.assertEqual(self.browser.evaluate("which.autocomplete"), "off")
        self.browser.evaluate("document.activeElement.blur()")
        self.browser.wait_for(f"{pods}.includes('new-0')")

    def test_the_labels_of_a_process_are_explained(self):
        self.open()
        self.browser.evaluate("(() => { const form = document.querySelector('form[action=\"/explain\"]'); "
                              "form.pid.value = '4711'; form.requestSubmit(); })()")
        self.browser.wait_for("document.title === 'Labels of process 4711' && document.readyState === 'complete'")
        self.assertEqual(self.browser.evaluate("document.querySelector('pre').innerText.trim()"),
                         'process 4711\nlabels of its samples:\n  pod "<b>"')
        self.look("explanation")

    def test_works_without_scripts(self):
        self.become("ill")
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        self.addCleanup(self.browser.call, "Emulation.setScriptExecutionDisabled", value=False)
        self.browser.open(self.origin + "/")
        deadline = time.monotonic() + 60
        while not self.browser.evaluate("document.querySelector('footer') !== null"):
            self.assertLess(time.monotonic(), deadline)
        self.assertIn("Needs attention", self.text())
        self.assertIn("412,345,678", self.text())
        self.browser.evaluate("(() => { document.querySelector('label[data-name=namespace] select').value = "
                              "'namespace=shop'; document.querySelector('#which button').click(); })()")
        while self.become("ill") != "300 namespace=shop":
            self.assertLess(time.monotonic(), deadline)

    def test_fits_a_phone(self):
        self.become("ill")
        self.open()
        self.browser.call("Emulation.setDeviceMetricsOverride", width=360, height=780,
                          deviceScaleFactor=2, mobile=True)
        self.addCleanup(self.browser.call, "Emulation.clearDeviceMetricsOverride")
        self.browser.wait_for("innerWidth === 360")
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 360)

    def test_says_when_the_agent_is_silent(self):
        agent = subprocess.Popen([made_up_agent, flame_graph], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        with agent:
            self.browser.open("http://" + agent.stdout.readline().strip() + "/")
            self.browser.wait_for("document.readyState === 'complete' && "
                                  "document.getElementById('live') !== null")
            agent.stdin.close()
        self.browser.wait_for("!document.getElementById('silence').hidden")
        self.assertIn("412,345,678", self.text())
        self.browser.errors.clear()  # of the connections that were refused

    def test_the_same_comes_as_json(self):
        self.become("ill")
        with urllib.request.urlopen(self.origin + "/api/status") as answer:
            self.assertEqual(answer.headers["Content-Type"], "application/json")
            status = json.load(answer)
        self.assertEqual(status["sampling"]["frequency_hz"], 49)
        self.assertEqual(status["sampling"]["ticks"]["lost"]["window_dropped"], 30_000_000)
        self.assertEqual(status["sinks"][2]["state"], "failing")
        self.assertEqual(status["sinks"][2]["behind_seconds"], 187 * 60)
        self.assertIsNone(status["sinks"][1]["last_error_at"])
        self.assertGreater(len(status["warnings"]), 3)


if __name__ == "__main__":
    make_profile = sys.argv.pop(2)
    made_up_agent = sys.argv.pop(1)
    if browsers.find_chromium() is None:
        print("skipped: there is no Chromium (Debian package chromium)")
        sys.exit(1 if os.environ.get("PYROMETER_REQUIRE_BPF") == "1" else 77)
    with tempfile.TemporaryDirectory() as directory:
        flame_graph = str(pathlib.Path(directory, "flames.html"))
        subprocess.run([make_profile, "300", "html", flame_graph], check=True, capture_output=True)
        unittest.main(verbosity=2)
