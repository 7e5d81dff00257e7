"""openai-python against the server at $SLUICE_URL."""

import os

import openai

client = openai.OpenAI(base_url=os.environ["SLUICE_URL"] + "/v1", api_key="any", max_retries=0)
USER = [{"role": "user", "content": "What is the capital of France?"}]


def ask(**fields):
    return client.chat.completions.create(**{"model": "smol", "messages": USER, "temperature": 0,
                                             "max_completion_tokens": 24} | fields)


def test_models():
    assert [model.id for model in client.models.list()] == ["smol"]
    assert client.models.retrieve("smol").object == "model"


def test_embeddings():
    texts = ["Paris is the capital of France.", "Bread rises in the oven."]
    packed = client.embeddings.create(model="smol", input=texts)  # the package asks for base64
    plain = client.embeddings.create(model="smol", input=texts, encoding_format="float")
    for one, other in zip(packed.data, plain.data, strict=True):
        assert len(one.embedding) == 576
        assert max(abs(x - y) for x, y in zip(one.embedding, other.embedding)) < 1e-7
    assert packed.usage.prompt_tokens == plain.usage.prompt_tokens > 4


def test_chat():
    answer = ask()
    assert answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    again = ask()
    assert again.usage.prompt_tokens_details.cached_tokens > 0
    assert again.choices[0].message.content == answer.choices[0].message.content


def test_chat_stream():
    whole = ask().choices[0].message.content
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0
    assert [c.choices[0].delta.role for c in chunks[:-1]].count("assistant") == 1
    with client.chat.completions.stream(model="smol", messages=USER, temperature=0,
                                        max_completion_tokens=24) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        assert "".join(deltas) == whole


def test_choices_and_logprobs():
    answer = ask(n=3, seed=1, temperature=1.5, logprobs=True, top_logprobs=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1
    token = answer.choices[0].logprobs.content[0]
    assert token.logprob <= 0 and len(token.top_logprobs) == 2


def test_stop():
    whole = ask().choices[0].message.content
    choice, = ask(stop=[whole[5:8]]).choices
    assert choice.message.content == whole[:whole.index(whole[5:8])]
    assert choice.finish_reason == "stop"


def test_completions():
    answer = client.completions.create(model="smol", prompt="The capital of France is", echo=True,
                                       max_tokens=4, temperature=0, logprobs=1)
    choice, = answer.choices
    assert choice.text.startswith("The capital of France is")
    assert choice.logprobs.token_logprobs[0] is None
    streamed = client.completions.create(model="smol", prompt="One, two,", max_tokens=4,
                                         stream=True)
    assert "".join(chunk.choices[0].text for chunk in streamed)


def error(kind, **fields):
    try:
        ask(**fields)
    except kind as failure:
        assert isinstance(failure.code, (str, type(None))) and failure.request_id
        return failure
    raise AssertionError(f"expected {kind.__name__} for {fields}")


def test_errors():
    assert error(openai.NotFoundError, model="gpt").code == "model_not_found"
    assert error(openai.BadRequestError, temperature=9).param == "temperature"
    assert error(openai.BadRequestError, messages=[]).param == "messages"
    long = [{"role": "user", "content": "word " * 20000}]
    assert error(openai.BadRequestError, messages=long).code == "context_length_exceeded"


def test_async_many():
    import asyncio

    async def all_of_them():
        many = openai.AsyncOpenAI(base_url=client.base_url, api_key="any", max_retries=0)
        return await asyncio.gather(*[many.chat.completions.create(
            model="smol", messages=USER, max_completion_tokens=4) for _ in range(24)])
    assert len(asyncio.run(all_of_them())) == 24


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"  {name}")
