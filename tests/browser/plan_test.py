#!/usr/bin/env python3
"""Uses the page of `sluice plan --html` as a person would, in headless Chromium.

Usage: plan_test.py SLUICE [unittest arguments]; exit code 77 without Chromium.
"""

import json
from pathlib import Path
from random import Random
import subprocess
import sys
import tempfile
import unittest

import webdriver

# How far the page may be from `sluice plan` between the points of its grid, relative: any load,
# nine in ten of them, and half of them.
WORST, MOST, USUAL = 0.15, 0.05, 0.01
N_LOADS = 6  # at random, of each model and range; Chromium throttles changes of the address


def plan(model, hardware, **flags):
    """What `sluice plan --json` says."""
    words = [SLUICE, "plan", model, "--on", hardware, "--json"]
    for name, value in flags.items():
        words += [f"--{name}", str(value)]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def fits(model, hardware, users, context):
    """Whether `sluice plan` finds a plan."""
    words = [SLUICE, "plan", model, "--on", hardware, "--users", str(users),
             "--context", str(context)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def random_loads(random, log_users, log_context):
    """Pairs of users and tokens, evenly in logarithms of two."""
    return [(round(2 ** random.uniform(*log_users)), round(2 ** random.uniform(*log_context)))
            for _ in range(N_LOADS)]


def short(value):
    """As the page writes numbers."""
    digits = 0 if value >= 100 or value == 0 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def shorts(value):
    """As the page may write a number that JSON has rounded to four decimals."""
    return {short(value - 5e-5), short(value + 5e-5)}


class PlanCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.page = webdriver.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.page.resize(1280, 800)
        self.page.prefer("light")
        self.page.open("about:blank")
        self.page.open(FILE.as_uri())

    def tearDown(self):
        self.assertEqual(self.page.complaints(), [])

    def choose(self, field, text):
        """The option that contains `text`."""
        self.page.run("""
            const field = document.querySelector(arguments[0]);
            field.selectedIndex = [...field.options].findIndex((o) => o.text.includes(arguments[1]));
            field.dispatchEvent(new Event('change'));""", f"#{field}", text)

    def load(self, users, context):
        self.page.run("""
            for (const [id, value] of Object.entries(arguments[0])) {
              const field = document.getElementById(id);
              field.value = value;
              field.dispatchEvent(new Event('input'));
            }""", {"users": users, "context": context})

    def tile(self, name):
        return self.page.run("""
            const tile = [...document.querySelectorAll('#tiles > div')].find(
                (div) => div.querySelector('dt').textContent === arguments[0]);
            return tile.querySelector('.number').textContent;""", name)

    def how(self):
        return self.page.text("#how")


class AnswerTest(PlanCase):
    def check(self, best):
        self.assertIn(self.tile("One user"), shorts(best["tokens_per_s_per_user"]))
        self.assertIn(self.tile("All users"), shorts(best["tokens_per_s"]))
        self.assertIn(self.tile("First token, alone"), shorts(best["first_token_ms"]))
        self.assertIn(self.tile("Price of output"), shorts(best["usd_per_mtok"]))
        self.assertIn(self.tile("Energy"), shorts(best["joules_per_token"]))
        self.assertIn(best["plan"], self.page.text("#headline"))

    def test_grid_points_are_what_plan_prints(self):
        self.assertIn("Kimi-K3", self.page.text("#headline"))
        self.choose("hardware", "CS-3")
        self.choose("draft", "dspark-7")
        self.load(16, 65536)
        self.assertIn("exactly", self.how())
        self.check(plan("Kimi-K3", "CS-3", users=16, context=65536, draft="dspark-7")["best"])
        self.choose("model", "Meta-Llama-3.1-70B")
        self.choose("hardware", "H100")
        self.choose("weights", "8bit")
        self.choose("draft", "none")
        self.load(64, 4096)
        best = plan("Meta-Llama-3.1-70B", "H100", users=64, context=4096, weights="8bit")["best"]
        self.check(best)
        times = self.page.run("return [...document.querySelectorAll('#time .number')].map("
                              "(n) => n.textContent)")
        for shown, part in zip(times, (
                "memory", "compute", "joins", "launch", "hops", "draft"), strict=False):
            value = best["time_us"][part]  # the page has six digits of it, and rounds those
            self.assertAlmostEqual(float(shown.removesuffix(" µs").replace(",", "")), value,
                                   delta=0.501 + 1e-5 * value)

    def test_between_points_it_is_close_or_says_what_it_shows(self):
        random = Random(5)
        errors, firsts, n_next, n_plans = [], [], 0, 0
        for model, hardware in (("Meta-Llama-3.1-70B", "H100"), ("gpt-oss-120b", "B200"),
                                ("DeepSeek-V4-Pro", "H100"), ("Kimi-K3", "B200"),
                                ("gpt-oss-120b", "H100")):
            self.choose("model", model)
            self.choose("hardware", hardware)
            loads = [(9, 2500), (150, 2048), (40, 12000), (3, 3000), (20, 6000), (100, 20000)]
            for users, context in loads + random_loads(random, (0, 8), (10, 20)):
                self.load(users, context)
                if self.page.visible("#fault"):
                    continue
                if "interpolated" not in self.how() or "cannot be" in self.how():
                    self.assertIn("every number is that of the next point", self.how())
                    n_next += 1
                    continue
                best = plan(model, hardware, users=users, context=context)["best"]
                shown = float(self.tile("One user").replace(",", ""))
                errors.append(abs(shown / best["tokens_per_s_per_user"] - 1))
                first_ms = best["first_token_ms"]
                shown = float(self.tile("First token, alone").replace(",", ""))
                firsts.append(abs(shown / (first_ms / 1e3 if first_ms >= 1e4 else first_ms) - 1))
                n_plans += best["plan"] in self.page.text("#headline")
        errors.sort()
        firsts.sort()
        print(f"\nbetween points: {len(errors)} loads, the same plan at {n_plans}, median "
              f"{100 * errors[len(errors) // 2]:.1f} %, worst {100 * errors[-1]:.1f} %; "
              f"{n_next} showed the next point; first token {100 * firsts[len(firsts) // 2]:.1f} %, "
              f"{100 * firsts[len(firsts) * 9 // 10]:.1f} % at nine of ten")
        self.assertGreater(len(errors), 10 * n_next)
        self.assertGreater(n_plans, 0.85 * len(errors))
        self.assertLess(errors[len(errors) // 2], USUAL)
        self.assertLess(errors[-1], WORST)
        for each in (errors, firsts):
            self.assertLess(each[len(each) * 9 // 10], MOST)

    def test_between_numbers_of_wafers_it_interpolates(self):
        self.choose("hardware", "CS-3")
        self.choose("model", "Kimi-K3")
        for users, context in ((24, 100000), (200, 8192)):
            self.load(users, context)
            self.assertIn("differ in their number of devices", self.how())
            best = plan("Kimi-K3", "CS-3", users=users, context=context)["best"]
            for tile, key in (("One user", "tokens_per_s_per_user"), ("Devices", "devices"),
                              ("Price of output", "usd_per_mtok")):
                shown = float(self.tile(tile).replace(",", ""))
                self.assertLess(abs(shown / best[key] - 1), MOST, (users, context, key))

    def test_between_points_it_names_the_command_that_is_exact(self):
        self.choose("model", "Kimi-K3")
        self.choose("hardware", "B200 + CS-3")
        self.choose("weights", "4bit")
        self.choose("draft", "mtp-4")
        self.choose("prefill", "H100")
        self.load(20, 10000)
        command = self.page.text("#how code")
        self.assertEqual(command, "sluice plan Kimi-K3 --on B200,CS-3 --users 20 --context 10000 "
                                  "--output 1024 --weights 4bit --draft mtp-4 --prefill-on H100")
        answer = json.loads(subprocess.run([SLUICE, *command.split()[1:], "--json"], check=True,
                                           capture_output=True, text=True).stdout)
        self.assertIn("prefill", answer)
        self.load(16, 16384)
        self.assertEqual(self.page.count("#how code"), 0)

    def test_two_kinds_of_hardware(self):
        self.choose("model", "Kimi-K3")
        self.choose("hardware", "B200 + CS-3")
        self.load(8, 16384)
        self.check(plan("Kimi-K3", "B200,CS-3", users=8, context=16384)["best"])
        self.assertIn("× CS-3", self.page.text("#phase-reading"))
        self.assertIn("B200, memory_bandwidth", self.page.text("#rests"))

    def test_prompts_elsewhere(self):
        self.choose("model", "DeepSeek-V3.2")
        self.choose("hardware", "CS-3")
        self.choose("prefill", "B200")
        self.load(1, 65536)
        prefill = plan("DeepSeek-V3.2", "CS-3", context=65536, **{"prefill-on": "B200"})["prefill"]
        ms = prefill["first_token_ms"]
        self.assertEqual(self.tile("First token, alone"), short(ms / 1e3 if ms >= 1e4 else ms))
        self.page.run("""[...document.querySelectorAll('#tiles > div')].find((div) =>
            div.textContent.startsWith('First token')).querySelector('.number').focus()""")
        self.assertIn(prefill["plan"], self.page.text("#source"))
        self.assertIn("of cache over the slower link", self.page.text("#source"))
        self.page.run("location.reload()")
        self.page.wait(lambda: self.page.text("#prefill option:checked") == "B200", "the same choice")

    def test_what_the_speed_rests_on(self):
        self.choose("model", "Kimi-K3")
        self.choose("hardware", "CS-3")
        self.load(16, 262144)
        answer = plan("Kimi-K3", "CS-3", users=16, context=262144)
        rows = self.page.run("""return [...document.querySelectorAll('#rests tbody tr')].map(
            (row) => [...row.cells].map((cell) => cell.textContent))""")
        by_number = {row[0]: row for row in rows}
        for want in answer["sensitivity"]:
            row = by_number[want["number"]]
            if want["elasticity"] < 1e-3:  # nothing, as the page writes it
                continue
            self.assertAlmostEqual(float(row[1]), want["elasticity"], delta=0.0101)
            if row[2]:
                for shown, end in zip(row[2].split(" – "), ("at_low", "at_high"), strict=True):
                    self.assertAlmostEqual(float(shown.replace(",", "")), want[end],
                                           delta=0.51 + 1e-3 * want[end])
        self.assertGreaterEqual(len(rows), len(answer["sensitivity"]))
        what = self.page.text("#rests-what")
        self.assertIn(f"{100 * answer['estimated_share']:.0f} % of the weight", what)
        self.assertNotIn("nearest", what)
        self.load(17, 262144)
        self.assertIn("16 users with 262,144 tokens, the nearest load", self.page.text("#rests-what"))

    def test_a_model_that_does_not_fit_says_by_how_much(self):
        self.choose("model", "3T/150B")
        self.choose("weights", "4bit")
        self.choose("hardware", "H100")
        self.load(256, 1048576)
        self.assertRegex(self.page.text("#fault"), r"needs .* per device, .* are usable: .* too little")
        self.assertIn("too little per device", self.page.text("#machines tbody tr:last-child"))
        self.load(1, 1024)
        self.assertFalse(self.page.visible("#fault"))

    def test_what_fits_is_what_plan_fits(self):
        random = Random(7)
        n_loads, n_fit, wrong = 0, 0, []
        for model, hardware in (("Kimi-K3", "B200"), ("Meta-Llama-3.1-70B", "H100"),
                                ("DeepSeek-V3.2", "H200"), ("DeepSeek-V3.2", "H100"),
                                ("gpt-oss-120b", "CS-3")):
            self.choose("model", model)
            self.choose("hardware", hardware)
            # Large ones, too: that is where it is a question.
            for users, context in (random_loads(random, (0, 8), (10, 20)) +
                                   random_loads(random, (5, 8), (16, 20))):
                n_loads += 1
                self.load(users, context)
                fault = self.page.visible("#fault")
                n_fit += not fault
                if fault == fits(model, hardware, users, context):
                    wrong.append((model, hardware, users, context, self.page.text("#fault")))
        print(f"\nfits: {n_loads} loads, {n_fit} fit, {len(wrong)} are wrong")
        self.assertTrue(4 < n_fit < n_loads - 4, n_fit)
        self.assertEqual(wrong, [])

    def test_the_address_keeps_what_is_chosen(self):
        self.choose("hardware", "CS-3")
        self.load(20, 3000)
        self.assertIn("hardware=CS-3", self.page.run("return location.hash"))
        self.page.run("location.reload()")
        self.page.wait(lambda: self.page.run("return document.querySelector('#users').value") == "20",
                       "the same load")
        self.assertIn("CS-3", self.page.text("#headline"))


class UseTest(PlanCase):
    def test_every_number_says_where_it_is_from(self):
        self.choose("hardware", "CS-3")
        silent = self.page.run("""
            const silent = [];
            for (const node of document.querySelectorAll('.number')) {
              node.focus();
              const text = document.querySelector('#source').textContent;
              if (node.getAttribute('aria-describedby') !== 'source' || text.length < 10) silent.push(text);
            }
            return silent;""")
        self.assertEqual(silent, [])
        self.page.run("document.querySelector('#tiles .number').focus()")
        self.assertIn("Cerebras, WSE-3 and CS-3 data sheet", self.page.text("#source"))
        self.page.press("Escape")
        self.assertFalse(self.page.visible("#source"))

    def test_keys(self):
        first = self.tile("First token, alone")
        self.page.run("document.querySelector('#context-slider').focus()")
        self.page.press("ArrowRight")
        self.page.press("ArrowRight")
        self.assertNotEqual(self.tile("First token, alone"), first)
        reading = self.page.text("#phase-reading")
        self.page.run("document.querySelector('#phase').focus()")
        self.page.press("ArrowUp")
        self.assertNotEqual(self.page.text("#phase-reading"), reading)

    def test_the_diagram_reads_points_of_phase(self):
        self.choose("hardware", "CS-3")
        self.choose("attention", "gqa")
        self.page.run("document.querySelector('#phase').focus()")
        for key in ["ArrowLeft"] * 17 + ["ArrowDown"] * 13:
            self.page.press(key)
        points = json.loads(subprocess.run(
            [SLUICE, "phase", "--on", "CS-3", "--attention", "gqa", "--json"], check=True,
            capture_output=True, text=True).stdout)["points"]
        self.assertIn(f"1,024 tokens, 10B parameters: {points[0]['devices']:,.0f} × CS-3, "
                      f"{short(points[0]['tokens_per_s_per_user'])} tokens/s",
                      self.page.text("#phase-reading"))
        self.assertGreater(self.page.count("#phase .contour"), 1)

    def test_claims(self):
        self.assertIn("circular 150B parameters are active",
                      " ".join(self.page.text("#claims").split()))
        self.page.click("#claims summary")
        self.assertTrue(self.page.visible("#claims details p"))

    def test_other_hardware_is_a_click_away(self):
        self.load(40, 12000)
        loads = self.page.text("#machines-load")
        self.assertRegex(loads, r"(40 users with 12,000|64 users with 16,384) tokens, by price")
        self.assertEqual(self.page.count("#hardware option"), 4)
        self.assertEqual(self.page.count("#machines tbody tr"), self.page.count("#hardware option"))
        self.page.click("#machines tbody tr:nth-child(2) .quiet")
        self.assertEqual(self.page.text("#machines tr[aria-current=true] .quiet"),
                         self.page.run("return document.querySelector('#hardware').selectedOptions[0].text"))

    def test_themes_and_a_phone(self):
        ground = "return getComputedStyle(document.body).backgroundColor"
        light = self.page.run(ground)
        self.page.prefer("dark")
        self.assertNotEqual(self.page.run(ground), light)
        self.page.click("#theme")
        self.assertEqual(self.page.run(ground), light)
        self.load(20, 3000)
        self.page.resize(390, 844)
        self.assertTrue(self.page.run("const page = document.documentElement;"
                                      "return page.scrollWidth === page.clientWidth"))
        self.page.run("document.querySelector('#tiles div:nth-child(4) .number').focus()")
        box = self.page.run("return document.querySelector('#source').getBoundingClientRect().toJSON()")
        self.assertTrue(box["left"] >= 0 and box["right"] <= 390, box)


if __name__ == "__main__":
    SLUICE = sys.argv[1]
    if reason := webdriver.missing():
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        FILE = Path(folder) / "plans.html"
        subprocess.run([SLUICE, "plan", "Kimi-K3", "--on", "B200,CS-3,H100", "--html", FILE], check=True)
        unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
