#!/usr/bin/env python3
"""Drives the WebSocket of `sluice serve` with a tiny model.

Usage: websocket_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import json
from pathlib import Path
import struct
import sys
import unittest

from responses_test import FUNCTION, ResponsesCase
import serve_test
from websocket_client import WebSocketClient


class WebSocketTest(ResponsesCase):
    def setUp(self):
        self.client = WebSocketClient(self.server.port)
        self.assertEqual(self.client.status, 101)
        self.addCleanup(self.client.close)

    def test_the_events_are_those_of_a_stream(self):
        events = self.client.turn(input="Hello there", max_output_tokens=16)
        streamed = self.stream()
        self.assertEqual([event["type"] for event in events],
                         [event["type"] for event in streamed])
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        self.assertEqual(self.text(events[-1]["response"]), self.text(streamed[-1]["response"]))

    def test_continues_what_is_not_stored(self):
        first = self.client.turn(input="My name is Ann.", store=False)[-1]["response"]
        second = self.client.turn(input="And now?", store=False,
                                  previous_response_id=first["id"])[-1]["response"]
        whole = self.ask(input=[{"role": "user", "content": "My name is Ann."}, *first["output"],
                                {"role": "user", "content": "And now?"}], max_output_tokens=8)
        self.assertEqual(self.text(second), self.text(whole))
        self.assertEqual(second["usage"]["input_tokens"], whole["usage"]["input_tokens"])
        other = WebSocketClient(self.server.port)
        error = other.turn(input="x", previous_response_id=first["id"])[-1]
        other.close()
        self.assertEqual((error["type"], error["error"]["code"], error["code"], error["status"]),
                         ("error", "previous_response_not_found", "previous_response_not_found",
                          400))

    def test_continues_what_is_stored(self):
        stored = self.ask(input="My name is Ann.")
        event = self.client.turn(input="And now?", previous_response_id=stored["id"])[-1]
        self.assertEqual(event["type"], "response.incomplete")

    def test_prewarm(self):
        text = "A long prefix that is sent only once. " * 6
        system = [{"role": "developer", "content": text}]
        created, going_on, completed = self.client.turn(input=system, generate=False, store=False)
        self.assertEqual((created["type"], completed["type"]),
                         ("response.created", "response.completed"))
        response = completed["response"]
        self.assertEqual((response["output"], response["usage"]["output_tokens"]), ([], 0))
        usage = self.client.turn(input="Hi", store=False, previous_response_id=response["id"]
                                 )[-1]["response"]["usage"]
        self.assertGreater(usage["input_tokens_details"]["cached_tokens"], 32)

    def test_a_prewarmed_prefix_holds_tools_and_is_continued_by_developers(self):
        developer = {"role": "developer", "content": "Be brief. " * 4}
        fields = {"store": False, "tools": [FUNCTION | {"description": "Looks around. " * 4}]}
        warm = self.client.turn(input=[developer], generate=False, **fields)[-1]["response"]
        more = [{"role": "developer", "content": "The folder is /tmp."},
                {"role": "user", "content": "Look!"}]
        usage = self.client.turn(input=more, previous_response_id=warm["id"], **fields
                                 )[-1]["response"]["usage"]
        # All but the tools' demonstration, which follows the instructions.
        self.assertGreater(usage["input_tokens_details"]["cached_tokens"],
                           warm["usage"]["input_tokens"] - 120)

    def test_a_large_event_is_one_frame(self):
        tool = {"type": "web_search", "note": "x" * 100000}
        events = self.client.turn(input="Hi", tools=[tool])
        self.assertEqual(events[-1]["response"]["tools"], [tool])

    def test_a_failed_continuation_ends_the_chain(self):
        first = self.client.turn(input="x", store=False)[-1]["response"]
        output = {"type": "function_call_output", "call_id": "nobody", "output": "x"}
        follow = {"store": False, "previous_response_id": first["id"]}
        self.assertEqual(self.client.turn(input=[output], **follow)[-1]["type"], "error")
        self.assertEqual(self.client.turn(input="x", **follow)[-1]["code"],
                         "previous_response_not_found")

    def test_lanes(self):
        lengths = list(range(400, 416))  # of the answers of one lane, which take turns
        for n in lengths:
            self.client.send(input="a", stream_id="long", max_output_tokens=n)
        self.client.send(input="b", stream_id="short", max_output_tokens=8)
        ends = []
        while len(ends) < len(lengths) + 1:
            event = self.client.event()
            if event["type"] == "response.incomplete":
                ends.append((event["stream_id"], event["response"]["usage"]["output_tokens"]))
        self.assertNotEqual(ends[-1], ("short", 8))  # it did not wait for the other lane
        ends.remove(("short", 8))
        self.assertEqual(ends, [("long", n) for n in lengths])

    def test_errors_name_their_lane(self):
        self.client.frame(1, json.dumps({"type": "no", "stream_id": "a"}).encode())
        self.assertEqual(self.client.event()["stream_id"], "a")
        for i in [*range(16)] * 3 + [16]:  # several for each, so that no lane ends before the last
            self.client.send(input="x", stream_id=f"lane-{i}", max_output_tokens=400)
        while (event := self.client.event())["type"] != "error":
            pass
        self.assertEqual((event["code"], event["stream_id"]),
                         ("websocket_stream_limit_reached", "lane-16"))

    def test_errors_are_events(self):
        for body, param in [({"type": "session.update"}, "type"), ({}, "type"),
                            ({"type": "response.create", "input": 3}, "input"),
                            ({"type": "response.create", "stream_id": "a b"}, "stream_id"),
                            ({"type": "response.create", "input": "x", "background": True},
                             "background")]:
            self.client.frame(1, json.dumps(body).encode())
            error = self.client.event()
            self.assertEqual((error["type"], error["param"]), ("error", param))
        self.client.frame(1, b"{")
        self.assertEqual(self.client.event()["status"], 400)
        self.assertEqual(self.client.turn(input="x")[-1]["type"], "response.incomplete")

    def test_pings_and_closing(self):
        self.client.frame(9, b"are you there")
        self.assertEqual(self.client.receive(), (10, b"are you there"))
        self.client.frame(8, struct.pack(">H", 1000))
        self.assertEqual(self.client.receive()[0], 8)
        binary = WebSocketClient(self.server.port)
        binary.frame(2, b"x")
        self.assertEqual(binary.receive(), (8, struct.pack(">H", 1003) + b"expected text"))
        binary.close()

    def test_a_client_that_goes_ends_its_responses(self):
        self.client.send(input="x", max_output_tokens=450)
        self.client.event()
        self.client.close()
        self.server.wait_for("sluice_requests_open", 0)

    def test_other_paths_have_none(self):
        other = WebSocketClient(self.server.port, "/v1/chat/completions")
        self.assertEqual(other.status, 405)
        other.close()

    def test_sigterm_lets_turns_finish(self):
        server = serve_test.Server("--model", serve_test.GOLDEN / "llama/model.gguf",
                                   "--threads", 1)
        busy, idle = WebSocketClient(server.port), WebSocketClient(server.port)
        busy.send(input="x", max_output_tokens=300)
        busy.event()
        server.process.send_signal(serve_test.signal.SIGTERM)
        self.assertEqual(idle.receive()[0], 8)
        event = busy.event()
        while event["type"] != "response.incomplete":
            event = busy.event()
        self.assertEqual(busy.receive()[0], 8)
        busy.close()
        idle.close()
        self.assertEqual(server.process.wait(30 * serve_test.PATIENCE), 0)
        server.process.stdout.close()


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
