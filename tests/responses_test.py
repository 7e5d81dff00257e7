#!/usr/bin/env python3
"""Drives POST /v1/responses of `sluice serve` with a tiny model.

Usage: responses_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import json
from pathlib import Path
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import serve_test
from websocket_client import WebSocketClient

URL = "/v1/responses"
FIELDS = set("""id object created_at completed_at status incomplete_details model
    previous_response_id instructions output error tools tool_choice truncation parallel_tool_calls
    text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage
    max_output_tokens max_tool_calls store background service_tier metadata safety_identifier
    prompt_cache_key""".split())
FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def events_of(text):
    """The events of a stream; demands the framing of each."""
    *frames, last, end = text.split("\n\n")
    if (last, end) != ("data: [DONE]", ""):
        raise AssertionError(f"expected [DONE] at the end, got {last!r} {end!r}")
    events = []
    for frame in frames:
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        if name != "event: " + event["type"]:
            raise AssertionError(f"expected the event's type, got {name}")
        events.append(event)
    return events


class ResponsesCase(serve_test.ServerCase):
    def ask(self, status=200, **fields):
        return self.server.post(URL, {"input": "Hello there", "max_output_tokens": 16,
                                      "temperature": 0, "ignore_eos": True} | fields, status)

    def stream(self, **fields):
        body = {"input": "Hello there", "max_output_tokens": 16, "temperature": 0,
                "ignore_eos": True, "stream": True} | fields
        status, headers, text = self.server.send("POST", URL, body)
        self.assertEqual(status, 200, text)
        self.assertTrue(headers["Content-Type"].startswith("text/event-stream"))
        return events_of(text)

    def text(self, response):
        return "".join(part["text"] for item in response["output"] if item["type"] == "message"
                       for part in item["content"])


class PlainTest(ResponsesCase):
    def test_the_resource_is_whole(self):
        response = self.ask(instructions="Be kind.", metadata={"a": "b"}, prompt_cache_key="k",
                            tools=[FUNCTION], tool_choice="none", reasoning={"effort": "low"},
                            text={"verbosity": "low"}, service_tier="fast", max_tool_calls=3)
        self.assertLessEqual(FIELDS, set(response))
        self.assertTrue(response["id"].startswith("resp_"))
        self.assertEqual(response["object"], "response")
        self.assertEqual(response["status"], "incomplete")  # ignore_eos runs into the limit
        self.assertEqual(response["incomplete_details"], {"reason": "max_output_tokens"})
        self.assertEqual(response["instructions"], "Be kind.")
        self.assertEqual(response["metadata"], {"a": "b"})
        self.assertEqual(response["prompt_cache_key"], "k")
        self.assertEqual(response["tool_choice"], "none")
        self.assertEqual(response["tools"], [FUNCTION | {"description": None, "strict": None}])
        self.assertEqual(response["reasoning"], {"effort": "low", "summary": None})
        self.assertEqual(response["text"], {"format": {"type": "text"}, "verbosity": "low"})
        self.assertEqual(response["service_tier"], "priority")
        self.assertEqual((response["max_output_tokens"], response["max_tool_calls"]), (16, 3))
        usage = response["usage"]
        self.assertEqual(usage["output_tokens"], 16)
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + 16)
        self.assertEqual(set(usage["input_tokens_details"]),
                         {"cached_tokens", "cache_write_tokens"})
        self.assertEqual(usage["output_tokens_details"], {"reasoning_tokens": 0})
        message, = response["output"]
        self.assertEqual((message["type"], message["role"], message["status"]),
                         ("message", "assistant", "incomplete"))

    def test_numbers_come_back_as_they_were_sent(self):
        numbers = {"temperature": 0.7, "top_p": 0.9, "presence_penalty": 0.3,
                   "frequency_penalty": -0.1}
        response = self.ask(**numbers)
        self.assertEqual({key: response[key] for key in numbers}, numbers)

    def test_completes(self):
        end = self.ask(max_output_tokens=60, ignore_eos=False, stop=["e", "a", "o", "t"])
        self.assertEqual((end["status"], end["incomplete_details"]), ("completed", None))
        self.assertGreaterEqual(end["completed_at"], end["created_at"])
        self.assertEqual(end["output"][0]["status"], "completed")

    def test_input_forms_are_one(self):
        whole = self.text(self.ask(instructions="Be kind."))
        parts = [{"type": "input_text", "text": "Hello there"}]
        for items in [[{"role": "user", "content": "Hello there"}],
                      [{"type": "message", "id": "msg_1", "role": "user", "content": parts}],
                      [{"type": "web_search_call", "id": "ws_1"}, {"role": "user",
                                                                  "content": parts}]]:
            self.assertEqual(self.text(self.ask(input=items, instructions="Be kind.")), whole)
            system = [{"role": "developer", "content": "Be kind."}]
            self.assertEqual(self.text(self.ask(input=system + items)), whole)

    def test_history_of_calls_and_reasoning(self):
        sealed = "sluice1." + "dGhvdWdodA"  # "thought"
        items = [{"role": "user", "content": "Look!"},
                 {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed},
                 {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
                 {"type": "function_call_output", "call_id": "c1", "output": "A tree."},
                 {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "+x"},
                 {"type": "custom_tool_call_output", "call_id": "c2",
                  "output": [{"type": "input_text", "text": "ok"}]}]
        whole = self.text(self.ask(input=items))
        error = self.ask(400, input=items[:1] + items[3:4])["error"]
        self.assertIn("c1", error["message"])
        items[2]["namespace"] = None  # as SDKs send what they do not set
        self.assertEqual(self.text(self.ask(input=items)), whole)
        items[1]["encrypted_content"] = "gAAAA"  # of another server: left out
        self.ask(input=items)

    def test_truncation(self):
        items = [{"role": "user", "content": f"Number {i}. " + "word " * 20} for i in range(40)]
        error = self.ask(400, input=items)["error"]
        self.assertEqual(error["code"], "context_length_exceeded")
        response = self.ask(input=items, truncation="auto")
        self.assertEqual(response["truncation"], "auto")
        self.assertLess(response["usage"]["input_tokens"], 512)

    def test_logprobs(self):
        response = self.ask(top_logprobs=2, include=["message.output_text.logprobs"])
        scores = response["output"][0]["content"][0]["logprobs"]
        self.assertEqual(len(scores), 16)
        self.assertTrue(all(len(score["top_logprobs"]) == 2 for score in scores))

    def test_wrong_fields_name_the_parameter(self):
        user = {"role": "user", "content": "x"}
        image = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
        named = {"type": "function", "name": "nope"}
        grammar = {"type": "grammar", "definition": "start: /a/"}
        cases = [({"input": None}, "input"), ({"input": []}, "input"), ({"input": 3}, "input"),
                 ({"input": [3]}, "input[0]"), ({"input": [user, {"role": "x"}]}, "input[1].role"),
                 ({"input": [{"type": "new"}]}, "input[0].type"),
                 ({"input": [{"role": "user"}]}, "input[0].content"),
                 ({"input": [{"role": "user", "content": [image]}]}, "input[0].content[0].type"),
                 ({"input": [{"type": "function_call", "name": "x"}]}, "input[0].call_id"),
                 ({"input": [{"type": "compaction", "encrypted_content": "x"}]},
                  "input[0].encrypted_content"),
                 ({"max_output_tokens": 0}, "max_output_tokens"), ({"store": "x"}, "store"),
                 ({"background": True, "store": False}, "store"),
                 ({"tools": {}}, "tools"), ({"tools": [1]}, "tools[0]"),
                 ({"tools": [{"type": "function"}]}, "tools[0].name"),
                 ({"tool_choice": "always"}, "tool_choice"),
                 ({"tool_choice": "required"}, "tool_choice"),
                 ({"tool_choice": named, "tools": [FUNCTION]}, "tool_choice.name"),
                 ({"tool_choice": {"name": "look"}, "tools": [FUNCTION]}, "tool_choice.type"),
                 ({"tools": [{"type": "custom", "name": "x", "format": {"type": "xml"}}]},
                  "tools[0].format.type"),
                 ({"tools": [{"type": "custom", "name": "x", "format": grammar}]},
                  "tools[0].format.syntax"),
                 ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
                 ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
                 ({"reasoning": {"effort": "ultra"}}, "reasoning.effort"),
                 ({"metadata": {"a": 1}}, "metadata"),
                 ({"client_metadata": 5}, "client_metadata"), ({"include": "x"}, "include"),
                 ({"truncation": "yes"}, "truncation"), ({"top_logprobs": 30}, "top_logprobs"),
                 ({"conversation": "conv_1"}, "conversation"),
                 ({"service_tier": "gold"}, "service_tier")]
        for fields, param in cases:
            self.assertEqual(self.error(URL, {"input": "x"} | fields)["param"], param, fields)
        self.assertEqual(self.error(URL, {"input": "x", "model": "gpt-9"}, 404)["code"],
                         "model_not_found")


class StreamTest(ResponsesCase):
    def test_events_in_order(self):
        events = self.stream()
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        types = [event["type"].removeprefix("response.") for event in events]
        deltas = [t for t in types if t == "output_text.delta"]
        self.assertEqual(types, ["created", "in_progress", "output_item.added",
                                 "content_part.added", *deltas, "output_text.done",
                                 "content_part.done", "output_item.done", "incomplete"])
        self.assertGreater(len(deltas), 4)
        first, last = events[0]["response"], events[-1]["response"]
        self.assertEqual((first["status"], first["output"]), ("in_progress", []))
        self.assertLessEqual(FIELDS, set(first))
        self.assertEqual(first["id"], last["id"])
        item, = last["output"]
        self.assertEqual({event["item_id"] for event in events if "item_id" in event},
                         {item["id"]})
        self.assertEqual(events[-2]["item"], item)
        text = "".join(event.get("delta", "") for event in events)
        self.assertEqual(text, item["content"][0]["text"])
        self.assertEqual(text, self.text(self.ask()))

    def test_a_client_that_goes_ends_its_response(self):
        body = json.dumps({"input": "x", "stream": True, "max_output_tokens": 400,
                           "ignore_eos": True})
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            self.assertIn(b"200 OK", client.recv(100))
        self.server.wait_for("sluice_requests_open", 0)


class ToolsTest(ResponsesCase):
    MODEL = "llama-tied/model.gguf"  # with room for tools: context 2048

    def test_tools_of_every_type_are_taken(self):
        tools = [FUNCTION, {"type": "web_search", "external_web_access": True},
                 {"type": "tool_search", "execution": "client"}, {"type": "local_shell"},
                 {"type": "custom", "name": "patch",
                  "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a+/"}},
                 {"type": "namespace", "name": "a", "tools": [FUNCTION]},
                 {"type": "something_new", "x": 1}]
        response = self.ask(tools=tools)
        self.assertEqual(response["tools"][1:], tools[1:])
        more = {"type": "additional_tools", "role": "developer", "tools": tools}
        self.ask(input=[more, {"role": "user", "content": "Hi"}])

    def test_a_call_that_is_cut_leaves_no_markup(self):
        for tokens in (1, 5, 10):
            response = self.ask(tools=[FUNCTION], tool_choice="required", ignore_eos=False,
                                max_output_tokens=tokens)
            self.assertEqual(response["status"], "incomplete")
            self.assertEqual(self.text(response), "")

    def test_max_tool_calls_ends_the_answer(self):
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        tools = [{"type": "function", "name": name, "parameters": schema} for name in ("look", "go")]
        fields = {"tools": tools, "tool_choice": "required", "temperature": 1, "seed": 0,
                  "max_output_tokens": 100}
        types = lambda response: [item["type"] for item in response["output"]]
        goes_on = self.ask(**fields)
        self.assertEqual(types(goes_on)[0], "function_call")
        self.assertGreater(len(types(goes_on)), 1)
        ended = self.ask(max_tool_calls=1, **fields)
        self.assertEqual((ended["status"], types(ended)), ("completed", ["function_call"]))
        self.assertEqual(ended["output"][0]["name"], goes_on["output"][0]["name"])

    def test_calls(self):
        place = {"type": "object", "properties": {"at": {"enum": ["here"]}}, "required": ["at"],
                 "additionalProperties": False}
        look = FUNCTION | {"parameters": place}
        patch = {"type": "custom", "name": "patch",
                 "format": {"type": "grammar", "syntax": "regex", "definition": "ab"}}
        other = {"type": "function", "name": "x"}
        space = {"type": "namespace", "name": "n", "tools": [look]}
        only = {"type": "allowed_tools", "mode": "required",
                "tools": [{"type": "function", "name": "look"}]}
        for tools, choice, name, kind, field, value in [
                ([other, space], only, "look", "function_call", "arguments", {"at": "here"}),
                ([patch], "required", "patch", "custom_tool_call", "input", "ab")]:
            events = self.stream(input="Go", tools=tools, tool_choice=choice,
                                 max_output_tokens=100, parallel_tool_calls=False)
            item, = events[-1]["response"]["output"]
            self.assertEqual((item["type"], item["name"], item["status"]),
                             (kind, name, "completed"))
            self.assertEqual(item.get("namespace"), "n" if name == "look" else None)
            got = item[field]
            deltas = [event["delta"] for event in events if event["type"].endswith(".delta")]
            self.assertEqual("".join(deltas), got)
            self.assertEqual(json.loads(got) if field == "arguments" else got, value)
            self.assertEqual(events[0]["response"]["output"], [])


class StoredTest(ResponsesCase):
    def get(self, path, status=200):
        got, _, text = self.server.send("GET", URL + "/" + path)
        self.assertEqual(got, status, text)
        return json.loads(text)

    def wait_for_end(self, identifier):
        for _ in range(500):
            response = self.get(identifier)
            if response["status"] not in ("queued", "in_progress"):
                return response
            time.sleep(0.02)
        raise AssertionError(f"expected an end, got {response['status']}")

    def test_what_was_answered_can_be_read_again(self):
        response = self.ask()
        self.assertEqual(self.get(response["id"]), response)
        last = self.stream()[-1]["response"]
        self.assertEqual(self.get(last["id"]), last)
        self.get(self.ask(store=False)["id"], 404)
        self.assertEqual(self.get("resp_none", 404)["error"]["code"], "response_not_found")

    def test_delete(self):
        identifier = self.ask()["id"]
        status, _, text = self.server.send("DELETE", f"{URL}/{identifier}")
        self.assertEqual((status, json.loads(text)),
                         (200, {"id": identifier, "object": "response", "deleted": True}))
        self.get(identifier, 404)
        self.assertEqual(self.server.send("DELETE", f"{URL}/{identifier}")[0], 404)

    def test_a_conversation_goes_on(self):
        first = self.ask(input="My name is Ann.")
        second = self.ask(input="And now?", previous_response_id=first["id"])
        self.assertEqual(second["previous_response_id"], first["id"])
        whole = self.ask(input=[{"role": "user", "content": "My name is Ann."},
                                *first["output"], {"role": "user", "content": "And now?"}])
        self.assertEqual(self.text(second), self.text(whole))
        self.assertEqual(second["usage"]["input_tokens"], whole["usage"]["input_tokens"])
        error = self.ask(400, previous_response_id="resp_none")["error"]
        self.assertEqual((error["code"], error["param"]),
                         ("previous_response_not_found", "previous_response_id"))
        self.server.send("DELETE", f"{URL}/{first['id']}")
        error = self.ask(400, previous_response_id=second["id"])["error"]
        self.assertIn(first["id"], error["message"])

    def test_item_references(self):
        item, = self.ask(input="My name is Ann.")["output"]
        user = {"role": "user", "content": "And now?"}
        by_id = self.ask(input=[{"type": "item_reference", "id": item["id"]}, user])
        self.assertEqual(self.text(by_id), self.text(self.ask(input=[item, user])))
        self.assertEqual(self.ask(404, input=[{"type": "item_reference", "id": "msg_no"}])
                         ["error"]["param"], "input[0].id")

    def test_input_items(self):
        items = [{"role": "user", "content": f"Number {i}"} for i in range(5)]
        identifier = self.ask(input=items)["id"]
        page = self.get(f"{identifier}/input_items?limit=2&order=asc")
        self.assertEqual([item["content"][0]["text"] for item in page["data"]],
                         ["Number 0", "Number 1"])
        self.assertEqual((page["object"], page["has_more"]), ("list", True))
        rest = self.get(f"{identifier}/input_items?order=asc&after={page['last_id']}")
        self.assertEqual([item["content"][0]["text"] for item in rest["data"]],
                         ["Number 2", "Number 3", "Number 4"])
        self.assertFalse(rest["has_more"])
        newest = self.get(f"{identifier}/input_items?limit=1")["data"][0]
        self.assertEqual(newest["content"], [{"type": "input_text", "text": "Number 4"}])
        for query in ["limit=0", "limit=x", "order=up", "after=nobody"]:
            self.get(f"{identifier}/input_items?{query}", 400)

    def test_background(self):
        response = self.ask(background=True, max_output_tokens=40)
        self.assertEqual((response["status"], response["output"]), ("queued", []))
        end = self.wait_for_end(response["id"])
        self.assertEqual(end["status"], "incomplete")
        self.assertEqual(self.text(end), self.text(self.ask(max_output_tokens=40)))
        text = self.server.send("GET", f"{URL}/{response['id']}?stream=true")[2]
        events = events_of(text)
        self.assertEqual([event["sequence_number"] for event in events],
                         list(range(len(events))))
        self.assertEqual([event["type"].removeprefix("response.") for event in events[:3]],
                         ["created", "queued", "in_progress"])
        self.assertEqual(events[-1]["response"], end)
        text = self.server.send("GET", f"{URL}/{response['id']}?stream=true&starting_after=4")[2]
        self.assertEqual(events_of(text), events[5:])
        self.get(self.ask()["id"] + "?stream=true", 400)

    def test_a_background_response_survives_its_client(self):
        body = {"input": "x", "background": True, "stream": True, "max_output_tokens": 60,
                "ignore_eos": True}
        text = json.dumps(body)
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
            file = client.makefile("rb")
            line = file.readline()
            while not line.startswith(b"data: "):
                line = file.readline()
            identifier = json.loads(line[6:])["response"]["id"]
            file.close()
        end = self.wait_for_end(identifier)
        self.assertEqual((end["status"], end["usage"]["output_tokens"]), ("incomplete", 60))

    def test_cancel(self):
        # Others come first, so that it cannot be done before it is cancelled.
        others = [self.ask(background=True, max_output_tokens=450)["id"] for _ in range(40)]
        response = self.ask(background=True, max_output_tokens=450)
        cancelled = self.server.post(f"{URL}/{response['id']}/cancel", {})
        for other in others:
            self.server.post(f"{URL}/{other}/cancel", {})
        self.assertEqual(cancelled["status"], "cancelled")
        self.assertEqual(self.get(response["id"]), cancelled)
        self.server.wait_for("sluice_requests_open", 0)
        self.assertEqual(self.server.post(f"{URL}/{response['id']}/cancel", {}), cancelled)
        self.server.post(f"{URL}/{self.ask()['id']}/cancel", {}, 400)  # not in the background

    def test_methods(self):
        identifier = self.ask()["id"]
        for method, path in [("PUT", ""), ("POST", "/input_items"), ("GET", "/cancel")]:
            self.assertEqual(self.server.send(method, f"{URL}/{identifier}{path}")[0], 405)
        self.assertEqual(self.server.send("GET", f"{URL}/{identifier}/other")[0], 404)

    def test_input_tokens(self):
        count = self.server.post(URL + "/input_tokens", {"input": "Hello there"})
        self.assertEqual(count, {"object": "response.input_tokens",
                                 "input_tokens": self.ask()["usage"]["input_tokens"]})

    def test_compact(self):
        items = [{"role": "user", "content": "We start on Tuesday."},
                 {"role": "assistant", "content": "Tuesday it is."}]
        compacted = self.server.post(URL + "/compact", {"model": "tiny", "input": items})
        self.assertEqual(compacted["object"], "response.compaction")
        message, compaction = compacted["output"]
        self.assertEqual((message["role"], compaction["type"]), ("user", "compaction"))
        self.assertGreater(compacted["usage"]["output_tokens"], 0)
        self.ask(input=[*compacted["output"], {"role": "user", "content": "Go on."}])
        self.assertEqual(self.error(URL + "/compact", {"input": items})["param"], "model")


class RestartTest(unittest.TestCase):
    def test_kill_9(self):
        with tempfile.TemporaryDirectory() as folder:
            def start():
                return serve_test.Server("--model", serve_test.GOLDEN / "llama/model.gguf",
                                         "--threads", 1, "--max-users", 1,
                                         "--db", Path(folder) / "sluice.db")
            server = start()
            fields = {"input": "Hello", "max_output_tokens": 8, "ignore_eos": True}
            done = server.post(URL, fields)
            for _ in range(12):  # one after the other, so that the last has not ended
                cut = server.post(URL, fields | {"background": True, "max_output_tokens": 500})
            server.process.kill()
            server.process.wait()
            server.process.stdout.close()
            server = start()
            try:
                get = lambda response: json.loads(server.send("GET", f"{URL}/{response['id']}")[2])
                self.assertEqual(get(done), done)
                self.assertEqual(get(cut)["status"], "failed")
                server.post(URL, fields | {"previous_response_id": done["id"]})
                text = server.send("GET", f"{URL}/{cut['id']}?stream=true")[2]
                self.assertEqual([event["type"] for event in events_of(text)], ["response.failed"])
            finally:
                self.assertEqual(server.stop(), 0)


class BooksTest(unittest.TestCase):
    def test_usage_is_in_the_same_file(self):
        with tempfile.TemporaryDirectory() as folder:
            db = f"{folder}/sluice.db"
            server = serve_test.Server("--model", serve_test.GOLDEN / "llama/model.gguf",
                                       "--threads", 1, "--db", db)
            body = {"input": "x", "max_output_tokens": 5, "ignore_eos": True}
            server.post(URL, body)
            client = WebSocketClient(server.port)
            client.turn(**body)
            client.close()
            self.assertEqual(server.stop(), 0)
            rows = subprocess.run([serve_test.SLUICE, "usage", "--json", "--db", db],
                                  check=True, capture_output=True, text=True).stdout
            row = json.loads(rows)
            self.assertEqual((row["requests"], row["completion_tokens"]), (2, 10))


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
