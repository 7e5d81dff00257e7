#!/usr/bin/env python3
"""Long conversations of POST /v1/responses of `sluice serve`, with a tiny model.

Usage: compaction_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import base64
import json
from pathlib import Path
import sys
import unittest

from responses_test import URL, ResponsesCase
import serve_test


def sealed_messages(item):
    """What a compaction stands for."""
    text = item["encrypted_content"].removeprefix("sluice1.")
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


class CompactionTest(ResponsesCase):
    """Conversations that outgrow the model's context."""

    EDIT = [{"type": "compaction", "compact_threshold": 200000}]  # three quarters of the context
    LAST = {"role": "user", "content": "And now?"}
    LONG = [{"role": "developer", "content": "Be kind."},
            *[message for i in range(16) for message in [
                {"role": "user", "content": f"Number {i}. " + "word " * 8},
                {"role": "assistant", "content": "Yes."}]], LAST]

    def types(self, response):
        return [item["type"] for item in response["output"]]

    def count(self, items):
        body = {"input": items, "truncation": "auto"}
        return self.server.post(URL + "/input_tokens", body)["input_tokens"]

    def test_a_long_conversation_is_compacted(self):
        self.assertEqual(self.ask(400, input=self.LONG)["error"]["code"],
                         "context_length_exceeded")
        response = self.ask(input=self.LONG, context_management=self.EDIT)
        self.assertEqual(self.types(response), ["compaction", "message"])
        self.assertEqual(response["status"], "incomplete")  # ignore_eos: for the answer only
        messages = sealed_messages(response["output"][0])
        self.assertEqual(messages[0], {"role": "system", "content": "Be kind."})
        self.assertEqual(messages[-1], self.LAST)
        self.assertTrue(messages[-2]["content"].startswith("Summary of the conversation"))
        self.assertIn("Number 15.", messages[-3]["content"])  # the newest of the user's words
        self.assertNotIn("Number 0.", json.dumps(messages))
        # Both the summary and the answer are in the books.
        self.assertGreater(response["usage"]["input_tokens"], 512)
        self.assertGreater(response["usage"]["output_tokens"], 16)

    def test_the_item_stands_for_all_before_it(self):
        output = self.ask(input=self.LONG, context_management=self.EDIT)["output"]
        following = [*output, {"role": "user", "content": "Go on."}]
        self.assertEqual(self.count(self.LONG + following), self.count(following))
        self.assertEqual(self.types(self.ask(input=self.LONG + following,
                                             context_management=self.EDIT)), ["message"])

    def test_a_stored_conversation_goes_on(self):
        first = self.ask(input=self.LONG, context_management=self.EDIT)
        second = self.ask(previous_response_id=first["id"], input="Go on.",
                          context_management=self.EDIT)
        self.assertEqual(self.types(second), ["message"])

    def test_unanswered_outputs_stay(self):
        call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "c1", "output": "A tree."}
        items = [*self.LONG, call, output]
        response = self.ask(input=items, context_management=self.EDIT)
        messages = sealed_messages(response["output"][0])
        self.assertEqual([message["role"] for message in messages[-3:]],
                         ["user", "assistant", "tool"])
        self.assertEqual(messages[-1]["content"], "A tree.")
        self.ask(input=[response["output"][0], output, self.LAST])  # its call is known

    def test_events(self):
        events = self.stream(input=self.LONG, context_management=self.EDIT)
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        self.assertEqual([event["type"].removeprefix("response.") for event in events[:5]],
                         ["created", "in_progress", "output_item.added", "output_item.done",
                          "output_item.added"])
        self.assertEqual(events[3]["item"], events[-1]["response"]["output"][0])

    def test_what_is_short_is_left_alone(self):
        for edit in [self.EDIT, [{"type": "compaction"}], [], None]:
            self.assertEqual(self.types(self.ask(context_management=edit)), ["message"])

    def test_compaction_on_demand(self):
        items = [{"role": "user", "content": "We start on Tuesday."},
                 {"role": "assistant", "content": "Tuesday it is."},
                 {"type": "compaction_trigger"}]
        response = self.ask(input=items)
        self.assertEqual((response["status"], self.types(response)), ("completed", ["compaction"]))
        self.assertEqual(sealed_messages(response["output"][0])[0], items[0])

    def test_cancel(self):
        # Others come first, so that it cannot be done before it is cancelled.
        others = [self.ask(background=True, max_output_tokens=450)["id"] for _ in range(40)]
        response = self.ask(input=self.LONG, context_management=self.EDIT, background=True,
                            max_output_tokens=100)
        cancelled = self.server.post(f"{URL}/{response['id']}/cancel", {})
        self.assertEqual(cancelled["status"], "cancelled")
        for other in others:
            self.server.post(f"{URL}/{other}/cancel", {})
        self.server.wait_for("sluice_requests_open", 0)

    def test_wrong_edits(self):
        for edits, param in [("x", ""), ([{}], "[0].type"), ([{"type": "clear"}], "[0].type"),
                             ([{"type": "compaction", "compact_threshold": 10}],
                              "[0].compact_threshold")]:
            error = self.ask(400, context_management=edits)["error"]
            self.assertEqual(error["param"], "context_management" + param)
        for text in ["sluice1.", "sluice1.W10", "sluice1.WzNd", "sluice1.eyJyb2xlIjozfQ"]:
            item = {"type": "compaction", "encrypted_content": text}
            error = self.ask(400, input=[item, self.LAST])["error"]
            self.assertTrue(error["param"].startswith("input[0].encrypted_content"), error)


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
