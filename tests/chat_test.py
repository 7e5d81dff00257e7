#!/usr/bin/env python3
"""Drives the tool calls, schemas and grammars of `sluice serve`.

Usage: chat_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

from concurrent.futures import ThreadPoolExecutor
import json
from pathlib import Path
import sys
import unittest

import serve_test
from serve_test import CHAT, DEFAULT_MODEL, Server, ServerCase

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather at a place",
    "parameters": {"type": "object", "required": ["place", "unit"], "additionalProperties": False,
                   "properties": {"place": {"type": "string"}, "unit": {"enum": ["c", "f"]}}}}}
PING = {"type": "function", "function": {"name": "ping"}}
PATCH = {"type": "custom", "custom": {
    "name": "patch", "format": {"type": "grammar", "grammar": {
        "syntax": "lark",
        "definition": 'start: "*** \\"" /[a-z]{3,8}/ LF "end"\n%import common.LF'}}}}
ASK = [{"role": "user", "content": "What is the weather in Oslo?"}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}


def bombs():
    """Schemas that are small, and enormous when written out."""
    doubling = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i - 1}"}] * 2} for i in range(1, 25)}
    deep = {"type": "object"}
    for _ in range(120):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"]}
    return [
        {"$defs": doubling | {"d0": {"type": "object"}}, "$ref": "#/$defs/d24"},
        {"type": "string", "pattern": "((a{0,100}){0,100}){0,100}"},
        {"type": "string", "pattern": "(x+x+)+y" * 500},
        {"type": "array", "maxItems": 10 ** 9, "items": {"type": "string", "maxLength": 10 ** 9}},
        {"anyOf": [{"type": "object", "properties": {f"p{i}": deep}} for i in range(50)]},
    ]


class ChatToolsTest(ServerCase):
    def test_wrong_fields_name_the_parameter(self):
        tools = {"tools": [WEATHER, PING]}
        broken = {"tools": [{"type": "function", "function": {
            "name": "x", "strict": True, "parameters": {"uniqueItemz": 1}}}]}
        for fields, param in [
                ({"tool_choice": "required"}, "tool_choice"),
                (tools | {"tool_choice": {"type": "function", "function": {"name": "x"}}},
                 "tool_choice"),
                (tools | {"tool_choice": {"type": "function"}}, "tool_choice.type"),
                (tools | {"parallel_tool_calls": 3}, "parallel_tool_calls"),
                (tools | {"tool_choice": {"type": "allowed_tools", "allowed_tools": {
                    "mode": "auto", "tools": [{"type": "function", "function": {"name": "x"}}]}}},
                 "tool_choice"),
                ({"tools": [{"type": "custom"}]}, "tools[0].custom"),
                ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
                ({"response_format": schema_format({"uniqueItemz": 1})},
                 "response_format.json_schema.schema"),
                (broken | {"tool_choice": "required"}, "tools"),
                (broken | {"response_format": schema_format({})}, "tools"),
                ({"response_format": {"type": "json_schema",
                                      "json_schema": {"schema": {}, "strict": 1}}},
                 "response_format.json_schema.strict")]:
            body = {"messages": ASK} | fields
            self.assertEqual(self.error(CHAT, body)["param"], param, body)
        error = self.error(CHAT, {"messages": ASK, "response_format":
                                  schema_format({"uniqueItemz": 1})})
        self.assertIn("uniqueItemz", error["message"])

    def test_bad_lark_names_its_line(self):
        tool = json.loads(json.dumps(PATCH))
        tool["custom"]["format"]["grammar"]["definition"] = "start: a\na: b{c}"
        error = self.error(CHAT, {"messages": ASK, "tools": [tool], "tool_choice": "required"})
        self.assertIn("tool patch: line 2: a template is not supported", error["message"])

    def test_bombs_are_refused_while_others_stream(self):
        stream = {"messages": ASK, "max_tokens": 400, "ignore_eos": True}
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(self.server.stream, CHAT, stream)
            for schema in bombs():
                # Unbounded, it would take minutes: longer than the connection waits.
                status, _, _ = self.server.send(
                    "POST", CHAT, {"messages": ASK, "max_tokens": 1,
                                   "response_format": schema_format(schema)})
                self.assertIn(status, (200, 400))
            self.error(CHAT, {"messages": ASK, "response_format": schema_format(bombs()[0])})
            self.assertEqual(other.result()[-1]["choices"][0]["finish_reason"], "length")
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0])
        if not serve_test.SANITIZED:
            self.assertLess(peak, 256 << 10)


@unittest.skipUnless(DEFAULT_MODEL.exists(), "SKIPPED: the default model is not there")
class DefaultModelToolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--model", DEFAULT_MODEL)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def ask(self, **fields):
        body = {"messages": ASK, "temperature": 0, "max_tokens": 120} | fields
        return self.server.post(CHAT, body)

    def calls(self, **fields):
        choice, = self.ask(**fields)["choices"]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertIsNone(choice["message"]["content"])
        return choice["message"]["tool_calls"]

    def check_weather(self, call):
        arguments = json.loads(call["function"]["arguments"])
        self.assertEqual(call["type"], "function")
        self.assertEqual(call["function"]["name"], "get_weather")
        self.assertEqual(set(arguments), {"place", "unit"})
        self.assertIn(arguments["unit"], "cf")

    def test_a_grammar_that_fails_midway_is_the_requests_fault(self):
        # Texts of many characters can be split in more ways than are followed.
        pattern = {"type": "string", "pattern": "(.{1,50}){60,}"}
        body = {"messages": ASK, "max_tokens": 100, "temperature": 0,
                "response_format": schema_format(pattern)}
        error = self.server.post(CHAT, body, 400)["error"]
        self.assertEqual(error["code"], "invalid_grammar")
        self.assertIn("ambiguous", error["message"])
        _, _, events = self.server.send("POST", CHAT, body | {"stream": True})
        self.assertTrue(events.startswith("data: "), events)  # it had begun
        last = json.loads(events.rstrip().split("\n\n")[-1].removeprefix("data: "))
        self.assertEqual(last["error"]["code"], "invalid_grammar")
        text = {"format": {"type": "json_schema", "name": "x", "schema": pattern}}
        error = self.server.post("/v1/responses", {"input": "Hi", "text": text,
                                                    "temperature": 0}, 400)["error"]
        self.assertIn("ambiguous", error["message"])

    def test_forced_calls(self):
        call, = self.calls(tools=[PING, WEATHER], tool_choice=NAMED)
        self.check_weather(call)
        again, = self.calls(tools=[PING, WEATHER], tool_choice=NAMED)
        self.assertEqual(call["function"], again["function"])
        self.assertNotEqual(call["id"], again["id"])
        call, = self.calls(tools=[WEATHER], tool_choice="required", parallel_tool_calls=False)
        self.check_weather(call)

    def test_allowed_tools(self):
        call, = self.calls(tools=[PING, WEATHER], parallel_tool_calls=False, tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [NAMED]}})
        self.check_weather(call)

    def test_the_model_calls_by_itself_where_it_helps(self):
        call, = self.calls(tools=[WEATHER])
        self.check_weather(call)
        self.assertEqual(json.loads(call["function"]["arguments"])["place"], "Oslo")
        for fields in [{"tool_choice": "none"},
                       {"messages": [{"role": "user", "content": "How are you?"}]}]:
            message = self.ask(tools=[WEATHER], **fields)["choices"][0]["message"]
            self.assertTrue(message["content"])
            self.assertNotIn("tool_calls", message)

    def test_calls_of_its_own_are_good_at_any_temperature(self):
        for choice in self.ask(tools=[WEATHER], temperature=1.2, n=8, seed=3)["choices"]:
            for call in choice["message"].get("tool_calls", []):
                self.check_weather(call)

    def test_schemas_that_cannot_be_kept_to_are_taken(self):
        odd = json.loads(json.dumps(WEATHER))
        odd["function"]["parameters"]["properties"]["place"]["uniqueItemz"] = True
        self.ask(tools=[odd], max_tokens=4)
        odd["function"]["strict"] = True
        self.server.post(CHAT, {"messages": ASK, "tools": [odd]}, 400)

    def test_a_stream_says_the_same(self):
        fields = {"messages": ASK, "temperature": 0, "max_tokens": 120, "tools": [WEATHER],
                  "tool_choice": NAMED}
        whole, = self.calls(tools=[WEATHER], tool_choice=NAMED)
        chunks = self.server.stream(CHAT, fields)
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        self.assertEqual(deltas[0]["role"], "assistant")
        first = deltas[0]["tool_calls"][0]
        self.assertEqual((first["index"], first["type"], first["function"]),
                         (0, "function", {"name": "get_weather", "arguments": ""}))
        rest = [delta["tool_calls"][0] for delta in deltas[1:-1]]
        self.assertGreater(len(rest), 5)
        for delta in rest:
            self.assertEqual((set(delta), delta["index"], set(delta["function"])),
                             ({"index", "function"}, 0, {"arguments"}))
        self.assertEqual("".join(delta["function"]["arguments"] for delta in rest),
                         whole["function"]["arguments"])
        self.assertEqual((deltas[-1], chunks[-1]["choices"][0]["finish_reason"]),
                         ({}, "tool_calls"))

    def test_length_wins_within_a_call(self):
        choice, = self.ask(tools=[WEATHER], tool_choice=NAMED, max_tokens=25)["choices"]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(choice["message"]["tool_calls"][0]["function"]["name"], "get_weather")

    def test_a_call_that_is_cut_leaves_no_markup(self):
        for tokens in range(1, 14):
            fields = {"tools": [WEATHER], "tool_choice": "required", "max_tokens": tokens}
            choice, = self.ask(**fields)["choices"]
            self.assertEqual(choice["finish_reason"], "length")
            self.assertFalse(choice["message"]["content"], tokens)
            chunks = self.server.stream(CHAT, {"messages": ASK} | fields)
            self.assertFalse("".join(chunk["choices"][0]["delta"].get("content") or ""
                                     for chunk in chunks), tokens)

    def test_choices_of_forced_calls(self):
        answer = self.ask(tools=[WEATHER], tool_choice=NAMED, n=3, temperature=1.2, seed=1,
                          logprobs=True)
        for choice in answer["choices"]:
            call, = choice["message"]["tool_calls"]
            self.check_weather(call)
            self.assertGreater(len(choice["logprobs"]["content"]), 10)

    def test_custom_tools_follow_their_grammar(self):
        call, = self.calls(tools=[PATCH], tool_choice={"type": "custom", "custom":
                                                       {"name": "patch"}})
        self.assertEqual(call["type"], "custom")
        self.assertRegex(call["custom"]["input"], r'^\*\*\* "[a-z]{3,8}\nend$')

    def test_schemas(self):
        schema = {"type": "object", "required": ["city", "n"], "additionalProperties": False,
                  "properties": {"city": {"type": "string", "maxLength": 20},
                                 "n": {"type": "integer"}}}
        content = self.ask(response_format=schema_format(schema))["choices"][0]["message"]["content"]
        value = json.loads(content)
        self.assertEqual(list(value), ["city", "n"])
        self.assertIsInstance(value["n"], int)
        content = self.ask(response_format={"type": "json_object"})["choices"][0]["message"]["content"]
        self.assertIsInstance(json.loads(content), dict)

    def test_the_second_turn_finds_the_first_in_the_cache(self):
        for place, choice in [("Oslo", NAMED), ("Paris", "auto")]:
            ask = [{"role": "user", "content": f"What is the weather in {place}?"}]
            first = self.ask(messages=ask, tools=[WEATHER], tool_choice=choice)
            message = first["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"],
                      "content": "sunny"}
            usage = self.ask(messages=ask + [message, result], tools=[WEATHER])["usage"]
            # Whole pages of 32 tokens of what was computed before; the last token was not.
            computed = first["usage"]["prompt_tokens"] + first["usage"]["completion_tokens"] - 1
            self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], computed // 32 * 32)


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
