"""Schemas and forced calls by openai-python, against the server at $SLUICE_URL."""

import json
import os

import openai

client = openai.OpenAI(base_url=os.environ["SLUICE_URL"] + "/v1", api_key="any", max_retries=0)
USER = [{"role": "user", "content": "What is the capital of France?"}]
PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age"],
          "properties": {"name": {"type": "string", "maxLength": 20},
                         "age": {"type": "integer", "minimum": 0, "maximum": 150}}}
TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather in a city", "parameters": {
        "type": "object", "additionalProperties": False, "required": ["city"],
        "properties": {"city": {"type": "string", "maxLength": 20}}}}}


def ask(**fields):
    return client.chat.completions.create(**{"model": "smol", "messages": USER, "temperature": 0,
                                             "max_completion_tokens": 24} | fields)


def test_structured_output():
    for fields in ({}, {"stream": True}):
        answer = ask(max_completion_tokens=60, messages=[{"role": "user", "content": "A person?"}],
                     response_format={"type": "json_schema", "json_schema": {
                         "name": "person", "strict": True, "schema": PERSON}}, **fields)
        text = (answer.choices[0].message.content if not fields else
                "".join(c.choices[0].delta.content or "" for c in answer))
        person = json.loads(text)
        assert set(person) == {"name", "age"} and 0 <= person["age"] <= 150


def test_forced_tools():
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        answer = ask(tools=[TOOL], tool_choice=choice, parallel_tool_calls=False,
                     max_completion_tokens=60)
        call, = answer.choices[0].message.tool_calls
        assert call.function.name == "get_weather"
        assert set(json.loads(call.function.arguments)) == {"city"}
        assert answer.choices[0].finish_reason == "tool_calls"
    follow = ask(tools=[TOOL], messages=[*USER, answer.choices[0].message.model_dump(
        exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "Sunny"}])
    assert follow.choices[0].message.role == "assistant"


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"  {name}")
