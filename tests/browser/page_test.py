#!/usr/bin/env python3
"""Uses the server's page as a person would, in headless Chromium: clicks, types, reads the text.

Usage: page_test.py SLUICE GOLDEN_DIR [unittest arguments]; exit code 77 without Chromium.
"""

import json
from pathlib import Path
import sys
import unittest

import webdriver

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import serve_test  # noqa: E402  (its folder has just been added)

MARKDOWN = """# Title

Some **bold**, *slanted*, `code` and ~~old~~ text with snake_case_names.

1. first
2. second
   - inner

```python
print("<b>not bold</b>")
```

| a | b |
|---|--:|
| 1 | **2** |

> quoted

[good](https://example.org/x) [bad](javascript:alert(1)) https://example.org/y.
<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>
"""


class PageCase(unittest.TestCase):
    MODEL = "llama/model.gguf"  # in the golden folder, unless it is a whole path

    @classmethod
    def setUpClass(cls):
        cls.server = serve_test.Server("--model", f"{serve_test.GOLDEN / cls.MODEL},tiny",
                                       "--threads", 1, "--stages", 2)
        cls.addClassCleanup(cls.server.stop)
        cls.browser = webdriver.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.page = self.browser
        self.page.resize(1280, 800)
        self.page.prefer("light")
        self.open()
        self.page.run("localStorage.clear()")
        self.open()

    def tearDown(self):
        self.assertEqual(self.page.complaints(), [])

    def open(self):
        self.page.open(f"http://127.0.0.1:{self.server.port}/")
        self.page.wait(lambda: self.page.text("#model") == "tiny", "the model's name")

    def set(self, **values):
        """Settings, typed into their fields."""
        if not self.page.visible("#settings"):
            self.page.click("#show-settings")
        for name, value in values.items():
            self.page.fill(f"[data-setting={name}]", str(value))

    def ask(self, text, n=1):
        """Sends and waits for the n-th answer of the conversation."""
        self.page.type("#input", text)
        self.page.press("Enter")
        self.wait_for_answers(n)

    def wait_for_answers(self, n):
        done = "article.assistant[aria-busy=false]"
        self.page.wait(lambda: self.page.count(done) == n and self.page.visible("#send"),
                       f"{n} answers")

    def seed(self, *messages, title="Seeded"):
        """Opens the page with a conversation that is already there."""
        self.page.run("localStorage.setItem('sluice.conversations', arguments[0])",
                      json.dumps([{"id": "seed", "title": title, "messages": messages}]))
        self.open()


class ChatTest(PageCase):
    def answer(self):
        return self.page.text("article.assistant:last-of-type .body")

    def test_streams_an_answer_and_regenerates_it(self):
        self.set(temperature=0, max_tokens=40)
        self.ask("Hello there")
        first = self.answer()
        want = self.server.post(serve_test.CHAT, {"messages": serve_test.USER, "temperature": 0,
                                                  "max_tokens": 40})
        plain = "".join(want["choices"][0]["message"]["content"].split())
        self.assertTrue(set("".join(first.split())) <= set(plain), (first, plain))
        self.assertIn("tokens/s", self.page.text("article.assistant footer"))
        self.page.press("Alt", "r")
        self.wait_for_answers(1)
        self.assertEqual(self.answer(), first)
        self.ask("And then?", 2)
        self.assertEqual(self.page.count("article.user"), 2)

    def test_stops(self):
        self.set(temperature=0, max_tokens=480)
        self.page.type("#input", "Go on for long")
        self.page.click("#send")
        self.page.wait(lambda: self.answer() != "", "some text")
        self.page.press("Escape")
        self.wait_for_answers(1)
        self.server.wait_for("sluice_requests_open", 0)
        if "tokens ·" not in self.page.text("article.assistant footer"):
            self.assertIn("stopped", self.page.text("article.assistant footer"))

    def test_says_what_the_server_says_is_wrong(self):
        self.ask("word " * 2000)
        self.assertIn("maximum context length", self.page.text("article.assistant .error"))
        self.page.run("for (const e of document.querySelectorAll('article.user button')) e.click()")
        self.assertEqual(self.page.count("article"), 0)
        self.assertTrue(self.page.run("return document.querySelector('#input').value")
                        .startswith("word word"))
        self.page.complaints()  # Chromium reports the status 400

    def test_system_prompt_and_settings_are_sent(self):
        self.set(max_tokens=4, system="Be brief.", stop="zzz", seed=7)
        self.page.run("""
            window.sent = [];
            const original = window.fetch;
            window.fetch = (path, options) => {
              if (options.body) window.sent.push(JSON.parse(options.body));
              return original(path, options);
            };""")
        self.ask("Hi")
        body, = self.page.run("return window.sent")
        self.assertEqual(body["messages"], [{"role": "system", "content": "Be brief."},
                                            {"role": "user", "content": "Hi"}])
        self.assertEqual((body["seed"], body["stop"], body["max_completion_tokens"]),
                         (7, ["zzz"], 4))
        self.assertNotIn("temperature", body)

    def test_a_wrong_schema_is_not_sent(self):
        self.set(schema='{"type": ')
        self.page.type("#input", "Hi")
        self.page.press("Enter")
        self.page.wait(lambda: self.page.run(
            "return document.activeElement.dataset.setting") == "schema", "the field to be shown")
        self.assertEqual(self.page.count("article.assistant"), 0)

    def test_usage_and_price(self):
        self.set(temperature=0, max_tokens=10, price_input=1, price_output=2)
        self.ask("Hello there")
        usage = self.page.run("return JSON.parse(localStorage['sluice.conversations'])"
                              "[0].messages[1].usage")
        price = (usage["input"] + 2 * usage["output"]) / 1e6
        self.assertEqual(self.page.text("#tally"),
                         f"{usage['input']} tokens in ({usage['cached']} cached) · "
                         f"{usage['output']} out · ${price:.6f}")


class ConversationTest(PageCase):
    def test_kept_and_deleted(self):
        self.set(max_tokens=4)
        self.ask("Remember me")
        self.page.click("#new")
        self.assertIn("What would you like", self.page.text("#messages"))
        self.open()
        self.assertIn("Remember me", self.page.text("#conversations"))
        self.page.click("#conversations .title")
        self.assertIn("Remember me", self.page.text("#messages"))
        self.page.click("#conversations [title=Delete]")
        self.assertEqual(self.page.count("#conversations li"), 0)

    def test_markdown_without_a_way_in(self):
        self.seed({"role": "user", "content": "<b>mine</b>"},
                  {"role": "assistant", "content": MARKDOWN})
        page = self.page
        self.assertEqual(page.text("article.user .body"), "<b>mine</b>")
        self.assertEqual(page.text(".body h1"), "Title")
        for css, text in [("strong", "bold"), ("em", "slanted"), ("p code", "code"),
                          ("del", "old"), ("ol > li:nth-child(2) li", "inner"),
                          ("td.right", "2"), ("blockquote", "quoted")]:
            self.assertEqual(page.text(f"article.assistant .body {css}"), text)
        self.assertIn("snake_case_names", page.text("article.assistant p"))
        self.assertEqual(page.text(".body pre"), 'print("<b>not bold</b>")')
        links = page.run("return [...document.querySelectorAll('.body a')].map(a => a.href)")
        self.assertEqual(links, ["https://example.org/x", "https://example.org/y"])
        body = page.text("article.assistant .body")
        self.assertIn("[bad](javascript:alert(1))", body)
        self.assertIn("<script>", body)
        self.assertEqual(page.count(".body img, .body script"), 0)
        self.assertIsNone(page.run("return window.hacked"))

    def test_tool_calls_are_shown_and_answered(self):
        call = {"id": "call_1", "name": "get_time", "arguments": '{"zone": "UTC"}'}
        self.seed({"role": "user", "content": "Time?"},
                  {"role": "assistant", "content": "", "calls": [call], "finish": "tool_calls"})
        self.assertIn("get_time", self.page.text(".call figcaption"))
        self.assertIn('"zone": "UTC"', self.page.text(".call pre"))
        self.page.type(".results textarea", "12:00")
        self.page.click(".results button")
        self.page.wait(lambda: self.page.count("article.tool") == 1, "the result")
        self.assertEqual(self.page.text("article.tool .body"), "12:00")
        self.wait_for_answers(2)
        self.page.complaints()  # the tiny model's template may refuse tools with a 400

    def test_reasoning_is_folded_away(self):
        self.seed({"role": "user", "content": "?"},
                  {"role": "assistant", "content": "Yes.", "reasoning": "Let me **see**."})
        self.assertFalse(self.page.visible("article .thinking strong"))
        self.page.click(".thinking summary")
        self.assertEqual(self.page.text("article .thinking strong"), "see")


class LookTest(PageCase):
    def test_pipeline_counts(self):
        page = self.page
        self.assertTrue(page.visible("#pipeline"))
        page.wait(lambda: page.count("#stages li") == 2, "a row per stage")
        self.assertIn("blocks 0–", page.text("#stages li:first-child"))
        self.assertIn("head", page.text("#stages li:last-child"))
        self.set(temperature=0, max_tokens=200)
        page.click("#show-pipeline")
        self.assertFalse(page.visible("#settings"))
        self.ask("Count for me")
        total = self.server.metric("sluice_generated_tokens_total")
        page.wait(lambda: page.text("#readings dd:last-of-type") == f"{total:,.0f}", "all tokens")
        self.assertRegex(page.text("#stages li:first-child"),
                         r"compute \d+\.\d\d · join \d+\.\d\d · wire \d+\.\d\d · idle \d+\.\d\d")
        page.wait(lambda: page.text("#pipeline-state") == "At rest", "rest")

    def test_a_route_goes_through_the_blocks_in_order(self):
        hops = self.page.run("""
            const {route_of} = await import('/page/pipeline.js');
            return route_of({n_blocks: 3, stages: [{blocks: [[0, 1], [2, 3]]},
                                                   {blocks: [[1, 2]], head: true}]});""")
        self.assertEqual([(hop["stage"], hop["from"], hop["to"]) for hop in hops],
                         [(0, 0, 0.25), (1, 0.25, 0.5), (0, 0.5, 0.75), (1, 0.75, 1)])

    def test_lanes_at_rest_follow_the_theme(self):
        lanes = "return document.querySelector('#lanes').toDataURL()"
        self.page.wait(lambda: self.page.text("#pipeline-state") == "Ready", "rest")
        light = self.page.run(lanes)
        self.page.prefer("dark")
        self.page.wait(lambda: self.page.run(lanes) != light, "lanes in other colors")

    def test_themes(self):
        ground = "return getComputedStyle(document.body).backgroundColor"
        light = self.page.run(ground)
        self.page.prefer("dark")
        dark = self.page.run(ground)
        self.assertNotEqual(light, dark)
        self.page.click("#theme")
        self.assertEqual((self.page.text("#theme"), self.page.run(ground)), ("Light", light))
        self.page.click("#theme")
        self.page.prefer("light")
        self.assertEqual((self.page.text("#theme"), self.page.run(ground)), ("Dark", dark))
        self.open()
        self.assertEqual(self.page.run(ground), dark)

    def test_fits_a_phone(self):
        self.page.resize(390, 844)
        self.seed({"role": "user", "content": "x" * 300}, {"role": "assistant", "content": MARKDOWN})
        width = "return document.documentElement.scrollWidth"
        self.assertEqual(self.page.run(width), 390)
        self.assertFalse(self.page.visible("#list"))
        for panel in ("list", "settings", "pipeline"):
            self.page.click(f"#show-{panel}")
            self.assertTrue(self.page.visible(f"#{panel}"))
            self.assertEqual(self.page.run(width), 390)
        self.page.click("#show-pipeline")
        self.assertFalse(self.page.visible("#pipeline"))

    def test_keys(self):
        self.page.press("Alt", "s")
        self.assertTrue(self.page.visible("#settings"))
        self.page.press("Escape")
        self.assertFalse(self.page.visible("#settings"))
        self.page.run("document.activeElement.blur()")
        self.page.press("/")
        self.page.type("#input", "two")
        self.page.press("Shift", "Enter")
        self.page.type("#input", "lines")
        self.assertEqual(self.page.run("return document.querySelector('#input').value"),
                         "two\nlines")


@unittest.skipUnless(serve_test.DEFAULT_MODEL.exists(), "SKIPPED: the default model is not there")
class FormTest(PageCase):
    """Needs a model whose forced answers are known to end."""
    MODEL = serve_test.DEFAULT_MODEL

    def test_a_schema_shapes_the_answer(self):
        self.set(temperature=0, max_tokens=60, schema=json.dumps({
            "type": "object", "additionalProperties": False, "required": ["age"],
            "properties": {"age": {"type": "integer", "minimum": 1, "maximum": 99}}}))
        self.ask("How old?")
        self.assertEqual(set(json.loads(self.page.text("article.assistant .body"))), {"age"})

    def test_a_forced_call_is_shown(self):
        self.set(temperature=0, max_tokens=60, tools=json.dumps([{
            "name": "get_time", "parameters": {
                "type": "object", "additionalProperties": False, "required": ["zone"],
                "properties": {"zone": {"type": "string", "maxLength": 12}}}}]))
        self.page.run("""
            const field = document.querySelector('[data-setting=tool_choice]');
            field.value = 'required';
            field.dispatchEvent(new Event('input'));""")
        self.ask("What time is it?")
        self.assertIn("get_time", self.page.text(".call figcaption"))
        self.assertEqual(set(json.loads(self.page.text(".call pre"))), {"zone"})
        self.assertTrue(self.page.visible(".results textarea"))


class HeadersTest(unittest.TestCase):
    def test_policy_and_paths(self):
        server = serve_test.Server("--model", serve_test.GOLDEN / "llama/model.gguf")
        try:
            status, headers, text = server.send("GET", "/")
            self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'; script-src 'self';", policy)
            self.assertNotIn("unsafe", policy)
            self.assertNotRegex(text, r"\son\w+=|<script>|style=")
            self.assertEqual(server.send("GET", "/page/style.css")[1]["Content-Type"],
                             "text/css; charset=utf-8")
            self.assertEqual(server.send("GET", "/page/../api.cc")[0], 404)
            self.assertEqual(server.send("POST", "/")[0], 405)
        finally:
            server.stop()


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    if reason := webdriver.missing():
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
