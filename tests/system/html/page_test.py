# SPDX-License-Identifier: Apache-2.0
"""The HTML page in headless Chromium. Usage: page_test.py MAKE_PROFILE [TEST...]"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser as browsers

STACKS = 50_000

READY = "performance.getEntriesByName('pyrometer-ready')[0]?.startTime"
# The page's own timers, and two frames for what they changed.
SETTLED = ("new Promise((done) => setTimeout(() => requestAnimationFrame(() => "
           "requestAnimationFrame(() => done(performance.now()))), 30))")
FRAMES = "[...document.querySelectorAll('#flame g.frame')]"

make_profile = None
directory = None


def make_page(stacks, form="html"):
    path = pathlib.Path(directory, f"{stacks}.{form}")
    if not path.exists():
        subprocess.run([make_profile, str(stacks), form, path], check=True, capture_output=True)
    return path.as_uri()


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(browsers.Browser())

    def open(self, stacks=300, state="", form="html"):
        self.browser.open("about:blank")  # another fragment alone would not load the page anew
        self.browser.open(make_page(stacks, form) + (f"#{state}" if state else ""))
        ready = self.browser.wait_for(READY)
        self.browser.evaluate(SETTLED)
        return ready

    def evaluate(self, expression):
        return self.browser.evaluate(expression)

    def type_search(self, text):
        """-> milliseconds until the page has been painted again"""
        return self.evaluate(
            f"(async () => {{ const begin = performance.now(); const box = "
            f"document.getElementById('search'); box.value = {json.dumps(text)}; "
            f"box.dispatchEvent(new Event('input')); "
            f"return await new Promise((done) => requestAnimationFrame(() => "
            f"requestAnimationFrame(() => done(performance.now())))) - begin; }})()")

    def click_view(self, view):
        self.evaluate(f"document.querySelector('[data-view={view}]').click()")
        self.evaluate(SETTLED)

    def press(self, key):
        self.evaluate("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
                      f"{{key: {key!r}, bubbles: true, cancelable: true}}))")
        self.evaluate(SETTLED)

    def labels(self):
        return self.evaluate(f"{FRAMES}.map((g) => g.textContent)")

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def test_renders_the_facts_and_a_frame_for_each_process(self):
        self.open()
        facts = self.evaluate("document.getElementById('facts').innerText")
        for text in ("build-7.example", "2026-11-21 00:00:00 UTC", "99 Hz", "10.0 s",
                     "no unwind information", "12,345 idle", "stack_map_full 3", "shop"):
            self.assertIn(text, facts)
        self.assertEqual(self.evaluate("document.title"), "A <made-up> profile")
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"),
                         "A <made-up> profile")
        for name in ("all", "shopd-0", "shopd-1", "<b>evil</b>"):
            self.assertIn(name, self.labels())
        self.assertGreater(self.evaluate(
            f"{FRAMES}.filter((g) => g.querySelector('rect').getBoundingClientRect().width > 1)"
            ".length"), 20)

    def test_speaks_of_an_event_that_is_counted_and_not_of_time(self):
        for view in ("", "view=bottom-up", "view=functions", "view=processes"):
            with self.subTest(view):
                self.open(form="faults.html", state=view)
                text = self.evaluate("document.body.innerText")
                self.assertIn("one of 10 page faults", text)
                self.assertRegex(text, r"(?i)page faults\n\s*[0-9,]+0\n")
                for word in ("CPU", "Hz", "NaN", "undefined"):
                    self.assertNotRegex(text, r"\b%s\b" % word)

    def test_says_so_if_there_are_no_samples(self):
        self.open(stacks=0)
        text = self.browser.evaluate("document.body.innerText")
        self.assertIn("There are no samples.", text)
        self.assertNotIn("NaN", text)

    def test_every_frame_is_as_wide_as_its_share(self):
        self.open()
        shares = self.evaluate(
            f"(() => {{ const width = (name) => {FRAMES}.find((g) => g.textContent === name)"
            ".querySelector('rect').getBoundingClientRect().width; return "
            "['shopd-0', 'shopd-1', '<b>evil</b>'].map((name) => width(name) / width('all')); })()")
        self.assertAlmostEqual(sum(shares), 1, places=3)

    def test_tells_where_functions_are_in_the_source(self):
        self.open(state="view=functions")
        heads = self.evaluate("[...document.querySelectorAll('#functions th')].map((th) => th.innerText.trim())")
        self.assertRegex(heads[-1], "(?i)source")
        last_cells = self.evaluate("[...document.querySelectorAll('#functions tbody tr')].map((tr) => "
                                   "[tr.innerText.includes('::inlined'), tr.lastElementChild.innerText])")
        self.assertEqual({(inlined, source) for inlined, source in last_cells},
                         {(True, "inline.h:2"), (False, "source.cc:1")})
        self.click_view("flame")
        tip = self.evaluate(
            f"(() => {{ const frame = {FRAMES}.find((g) => g.textContent.includes('::inlined'));"
            "const box = frame.querySelector('rect').getBoundingClientRect();"
            "frame.dispatchEvent(new MouseEvent('mouseover', {bubbles: true, clientX: box.x + 1, clientY: box.y + 1}));"
            "return document.getElementById('tip').innerText; })()")
        self.assertRegex(tip, r"inline\.h:2 · .* · user, inlined")

    def test_makes_no_request_but_for_itself(self):
        self.open(state="view=bottom-up")
        for view in ("flame", "functions", "processes"):
            self.click_view(view)
        self.type_search("sys_")
        sent = [url for url in self.browser.requests
                if not url.startswith((make_page(300), "data:"))]
        self.assertEqual(sent, [])

    def test_the_policy_stops_requests_and_foreign_scripts(self):
        self.open()
        self.evaluate("fetch('https://example.invalid/').catch(() => null)")
        self.evaluate("(() => { const s = document.createElement('script'); s.textContent = "
                      "'document.title = \"injected\"'; document.body.append(s); })()")
        self.assertEqual(self.evaluate("document.title"), "A <made-up> profile")
        # Without the policy the request would fail too, for there is no such host.
        for refused in self.browser.errors:
            self.assertIn("Content Security Policy", refused)
        for what in ("https://example.invalid/", "inline script"):
            self.assertTrue(any(what in error for error in self.browser.errors), what)
        self.browser.errors.clear()

    def test_hostile_names_are_text(self):
        self.open()
        self.type_search("onerror")
        for view in ("bottom-up", "functions", "processes", "flame"):
            self.click_view(view)
        self.evaluate(f"{FRAMES}[1].dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))")
        self.assertEqual(self.evaluate("document.title"), "A <made-up> profile")
        # Nothing of what the names would make of the page.
        self.assertEqual(self.evaluate(
            "document.querySelectorAll('img, [onerror], [onload], main b').length"), 0)
        self.click_view("functions")
        self.assertIn("</script><img src=x onerror=\"document.title='injected'\">",
                      self.evaluate("document.getElementById('functions').innerText"))

    def test_a_search_highlights_and_says_how_much_it_matched(self):
        self.open()
        self.type_search("HANDLE0(")
        hits = self.evaluate("[...document.querySelectorAll('#flame g.hit')]"
                             ".map((g) => g.getAttribute('name'))")
        self.assertGreater(len(hits), 0)
        self.assertTrue(all("Handle0(" in name for name in hits), hits)
        matched = self.evaluate("document.getElementById('matched').textContent")
        self.assertRegex(matched, r"^\d+\.\d\d % \([\d,]+ samples\)$")
        self.assertNotEqual(matched[:4], "0.00")
        self.press("Escape")
        self.assertEqual(self.evaluate("document.querySelectorAll('#flame g.hit').length"), 0)
        self.assertEqual(self.evaluate("document.getElementById('matched').textContent"), "")

    def test_a_search_takes_a_regular_expression_and_reports_a_broken_one(self):
        self.open(state="view=bottom-up")
        self.type_search(r"/^sys_function_\d+$/")
        self.assertGreater(self.evaluate("document.querySelectorAll('#flame g.hit').length"), 0)
        self.type_search("/(/")
        self.assertIn("not a regular expression",
                      self.evaluate("document.getElementById('matched').textContent"))

    def test_both_directions_match_the_same_samples(self):
        self.open(state="search=Handle0(")
        matched = self.evaluate("document.getElementById('matched').textContent")
        self.click_view("bottom-up")
        self.assertEqual(self.evaluate("document.getElementById('matched').textContent"), matched)
        first = self.evaluate(f"{FRAMES}.map((g) => d3.select(g).datum())"
                              ".filter((d) => d.depth === 1).sort((a, b) => a.x0 - b.x0)"
                              ".map((d) => d.data.node.value)")
        self.assertEqual(first, sorted(first, reverse=True))
        self.assertNotIn("shopd-0", self.labels()[:3])

    def test_bottom_up_ends_in_the_processes(self):
        self.open(state="view=bottom-up")
        self.evaluate("document.getElementById('flame').focus()")
        self.press("ArrowDown")
        self.press("Enter")
        leaves = self.evaluate(
            f"{FRAMES}.map((g) => d3.select(g).datum()).filter((d) => !d.children)"
            ".map((d) => d.data.node).filter((n) => n.at.length > 0).map((n) => n.value).length")
        self.assertGreater(leaves, 0)
        names = self.evaluate(f"{FRAMES}.map((g) => g.getAttribute('name'))")
        self.assertTrue({"shopd-0", "shopd-1", "<b>evil</b>"} & set(names))

    def test_a_click_zooms_and_escape_zooms_out(self):
        self.open()
        width = (f"{FRAMES}.find((g) => g.textContent === 'shopd-1').querySelector('rect')"
                 ".getBoundingClientRect().width")
        before = self.evaluate(width)
        self.evaluate(f"{FRAMES}.find((g) => g.textContent === 'shopd-1').querySelector('rect')"
                      ".dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.evaluate(SETTLED)
        self.assertGreater(self.evaluate(width), 2 * before)
        self.assertNotIn("shopd-0", self.labels())
        self.press("Escape")
        self.assertAlmostEqual(self.evaluate(width), before, delta=1)

    def test_zooming_shows_frames_that_were_too_narrow(self):
        self.open(stacks=STACKS)
        depth = f"Math.max(...{FRAMES}.map((g) => d3.select(g).datum().depth))"
        before = self.evaluate(depth)
        self.evaluate("document.getElementById('flame').focus()")
        for _ in range(before):
            self.press("ArrowDown")
        self.press("Enter")
        self.assertGreater(self.evaluate(depth), before)

    def test_the_keyboard_reaches_the_search(self):
        self.open()
        self.press("/")
        self.assertEqual(self.evaluate("document.activeElement.id"), "search")

    def test_flip_puts_the_root_at_the_bottom(self):
        self.open()
        top = f"{FRAMES}.find((g) => g.textContent === 'all').getBoundingClientRect().top"
        before = self.evaluate(top)
        self.evaluate("document.getElementById('flip').click()")
        self.evaluate(SETTLED)
        self.assertGreater(self.evaluate(top), before + 50)

    def test_kernel_user_and_jit_have_colours_of_their_own(self):
        self.open(state="view=bottom-up")
        hues = self.evaluate(
            "(() => { const hues = {}; for (const g of " + FRAMES + ") { const d = "
            "d3.select(g).datum(); const name = g.getAttribute('name'); const kind = "
            "/^sys_/.test(name) ? 'kernel' : /^shop::/.test(name) ? 'user' : null; if (kind) "
            "(hues[kind] ??= []).push(g.querySelector('rect').getAttribute('fill')); } "
            "return hues; })()")
        parse = lambda fill: int(fill.split("(")[1].split()[0])
        self.assertTrue(all(200 < parse(f) < 230 for f in hues["kernel"]), hues["kernel"][:5])
        self.assertTrue(any(parse(f) < 60 for f in hues["user"]), hues["user"][:5])

    def test_the_function_table_sorts_and_filters(self):
        self.open(state="view=functions")
        column = ("[...document.querySelectorAll('#functions tbody tr')].map((row) => "
                  "parseInt(row.cells[{}].textContent.replaceAll(',', '')))")
        selfs = self.evaluate(column.format(1))
        self.assertEqual(selfs, sorted(selfs, reverse=True))
        self.evaluate("document.querySelectorAll('#functions th button')[3].click()")
        totals = self.evaluate(column.format(3))
        self.assertEqual(totals, sorted(totals, reverse=True))
        self.assertNotEqual(selfs, totals)
        self.type_search("sys_function_1")
        names = self.evaluate("[...document.querySelectorAll('#functions td.name button')]"
                              ".map((b) => b.textContent)")
        self.assertTrue(names and all("sys_function_1" in name for name in names), names)

    def test_fits_the_window_when_that_changes(self):
        self.open()
        for width in (700, 1300):
            self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                              deviceScaleFactor=1, mobile=False)
            self.evaluate(SETTLED)
            root = self.evaluate(f"{FRAMES}.find((g) => g.textContent === 'all')"
                                 ".querySelector('rect').getBoundingClientRect().width")
            self.assertGreater(root, width - 60)
            self.assertLessEqual(
                self.evaluate("document.documentElement.scrollWidth"), width)
        self.browser.call("Emulation.clearDeviceMetricsOverride")

    def test_a_process_leads_to_its_flame_graph(self):
        self.open(state="view=processes")
        self.evaluate("[...document.querySelectorAll('#processes td.name button')]"
                      ".find((b) => b.textContent === 'shopd-0').click()")
        self.evaluate(SETTLED)
        self.assertIn("shopd-0", self.labels())
        self.assertNotIn("shopd-1", self.labels())

    def test_shows_fifty_thousand_stacks_and_prints_how_quickly(self):
        opened = self.open(stacks=STACKS)
        searched = self.type_search("Handle1")
        self.type_search("")
        bottom_up = self.evaluate(
            "(async () => { const begin = performance.now(); "
            "document.querySelector('[data-view=bottom-up]').click(); "
            f"return await {SETTLED} - begin; }})()")
        frames = self.evaluate(f"{FRAMES}.length")
        functions = self.evaluate(
            "(async () => { const begin = performance.now(); "
            "document.querySelector('[data-view=functions]').click(); "
            f"return await {SETTLED} - begin; }})()")
        print(f"{STACKS} stacks: opened in {opened:.0f} ms, searched in {searched:.0f} ms, "
              f"bottom up in {bottom_up:.0f} ms ({frames} frames drawn), functions in "
              f"{functions:.0f} ms")
        self.assertGreater(frames, 20)
        self.assertGreater(
            self.evaluate("document.querySelectorAll('#functions tbody tr').length"), 20)


if __name__ == "__main__":
    make_profile = sys.argv.pop(1)
    if browsers.find_chromium() is None:
        print("skipped: there is no Chromium (Debian package chromium)")
        sys.exit(1 if os.environ.get("PYROMETER_REQUIRE_BPF") == "1" else 77)
    with tempfile.TemporaryDirectory() as directory:
        unittest.main(verbosity=2)
