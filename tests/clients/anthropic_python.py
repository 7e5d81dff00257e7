"""Anthropic's Python client against the server at $SLUICE_URL."""

import os
import unittest

import anthropic

MODEL = "smol"
ADD = {"name": "add", "description": "Adds two numbers.",
       "input_schema": {"type": "object", "required": ["a", "b"], "additionalProperties": False,
                        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


class AnthropicTest(unittest.TestCase):
    client = anthropic.Anthropic(api_key="none", max_retries=0, base_url=os.environ["SLUICE_URL"])

    def ask(self, **fields):
        fields = {"model": MODEL, "max_tokens": 20, "messages": QUESTION,
                  "extra_body": {"temperature": 0}} | fields
        return self.client.messages.create(**fields)

    def test_answers(self):
        message = self.ask()
        self.assertTrue(message.content[0].text)
        self.assertIn(message.stop_reason, ["end_turn", "max_tokens"])
        self.assertTrue(message._request_id.startswith("req_"))
        counted = self.client.messages.count_tokens(model=MODEL, messages=QUESTION)
        self.assertEqual(counted.input_tokens,
                         message.usage.input_tokens + message.usage.cache_read_input_tokens)

    def test_streams(self):
        whole = self.ask()
        with self.client.messages.stream(model=MODEL, max_tokens=20, messages=QUESTION,
                                         extra_body={"temperature": 0}) as stream:
            text = "".join(stream.text_stream)
            message = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(message.content[0].text, text)
        self.assertEqual(message.stop_reason, whole.stop_reason)
        self.assertEqual(message.usage.output_tokens, whole.usage.output_tokens)

    def test_forced_calls_and_their_results(self):
        for choice in [{"type": "any"}, {"type": "tool", "name": "add"}]:
            message = self.ask(tools=[ADD], tool_choice=choice, max_tokens=200)
            call, = [block for block in message.content if block.type == "tool_use"]
            self.assertEqual((call.name, set(call.input)), ("add", {"a", "b"}))
            self.assertEqual(message.stop_reason, "tool_use")
            after = QUESTION + [{"role": "assistant", "content": message.content},
                                {"role": "user", "content": [
                                    {"type": "tool_result", "tool_use_id": call.id,
                                     "content": "Paris"}]}]
            self.assertTrue(self.ask(messages=after, tools=[ADD]).content)

    def test_a_streamed_call(self):
        with self.client.messages.stream(
                model=MODEL, max_tokens=200, messages=QUESTION, tools=[ADD],
                tool_choice={"type": "any"}, extra_body={"temperature": 0}) as stream:
            parts = [event.partial_json for event in stream if event.type == "input_json"]
            message = stream.get_final_message()
        call, = [block for block in message.content if block.type == "tool_use"]
        self.assertEqual(set(call.input), {"a", "b"})
        self.assertGreater(len(parts), 1)

    def test_a_json_schema(self):
        message = self.ask(max_tokens=200, output_config={
            "format": {"type": "json_schema", "schema": ADD["input_schema"]}})
        self.assertRegex(message.content[0].text, r'^\s*\{\s*"a"')

    def test_errors_have_their_classes(self):
        with self.assertRaises(anthropic.BadRequestError):
            self.ask(messages=[])
        with self.assertRaises(anthropic.NotFoundError):
            self.ask(model="claude")
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask(messages=[{"role": "user", "content": "word " * 20000}])
        self.assertIn("maximum context length", caught.exception.message)

    def test_models(self):
        model, = self.client.models.list()
        self.assertEqual((model.id, model.type), (MODEL, "model"))
        self.assertEqual(self.client.models.retrieve(model.id).display_name, model.id)


if __name__ == "__main__":
    unittest.main()
