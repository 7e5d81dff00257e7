#!/usr/bin/env python3
"""The Responses API through openai-python, against the server at $SLUICE_URL."""

import json
import os
from typing import Literal
import unittest

import openai
from pydantic import BaseModel

MODEL = "smol"


class Colour(BaseModel):
    name: str
    is_warm: bool


class Choice(BaseModel):
    number: Literal["one", "two", "three"]


TOOL = {"type": "function", "name": "get_weather", "description": "The weather at a place.",
        "strict": True,
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}},
                       "required": ["place"], "additionalProperties": False}}


class ResponsesTest(unittest.TestCase):
    client = openai.OpenAI(base_url=os.environ["SLUICE_URL"] + "/v1", api_key="any", max_retries=0)

    def create(self, **fields):
        return self.client.responses.create(**{"model": MODEL, "temperature": 0,
                                               "max_output_tokens": 40} | fields)

    def test_plain_and_stored(self):
        response = self.create(input="What is the capital of France?")
        self.assertTrue(response.output_text)
        self.assertGreater(response.usage.total_tokens, 0)
        self.assertEqual(self.client.responses.retrieve(response.id).output_text,
                         response.output_text)
        follow = self.create(input="Say that again.", previous_response_id=response.id)
        self.assertEqual(follow.previous_response_id, response.id)
        items = list(self.client.responses.input_items.list(response.id))
        self.assertEqual(items[0].role, "user")
        self.client.responses.delete(response.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(response.id)

    def test_stream(self):
        # The SDK wants an answer that ends by itself; a small model's does if it has to.
        with self.client.responses.stream(model=MODEL, input="Choose a number.", temperature=0,
                                          text_format=Choice) as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            final = stream.get_final_response()
        self.assertEqual(final.output_text, text)
        self.assertIn(final.output_parsed.number, ("one", "two", "three"))

    def test_forced_call_and_its_answer(self):
        question = {"role": "user", "content": "How is the weather in Rome?"}
        response = self.create(input=[question], tools=[TOOL], tool_choice="required",
                               max_output_tokens=100)
        call = next(item for item in response.output if item.type == "function_call")
        self.assertEqual(call.name, "get_weather")
        self.assertEqual(set(json.loads(call.arguments)), {"place"})
        answer = self.create(tools=[TOOL], tool_choice="none",
                             input=[question, *response.output,
                                    {"type": "function_call_output", "call_id": call.call_id,
                                     "output": "Sunny, 25 degrees."}])
        self.assertTrue(answer.output_text)

    def test_parse(self):
        response = self.client.responses.parse(model=MODEL, input="Describe red.",
                                               text_format=Colour, max_output_tokens=100)
        self.assertIsInstance(response.output_parsed, Colour)

    def test_background_tokens_and_compaction(self):
        response = self.create(input="Tell me a story.", background=True)
        self.assertIn(response.status, ("queued", "in_progress"))
        self.client.responses.cancel(response.id)
        self.assertIn(self.client.responses.retrieve(response.id).status,
                      ("cancelled", "completed", "incomplete"))
        count = self.client.responses.input_tokens.count(model=MODEL, input="Hello")
        self.assertGreater(count.input_tokens, 0)
        compacted = self.client.responses.compact(model=MODEL, input="We meet on Monday.")
        self.assertEqual(compacted.output[-1].type, "compaction")

    def test_errors(self):
        image = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA"}
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(input=[{"role": "user", "content": [image]}])
        self.assertEqual(caught.exception.param, "input[0].content[0].type")
        with self.assertRaises(openai.NotFoundError):
            self.create(input="x", model="nope")


if __name__ == "__main__":
    unittest.main()
