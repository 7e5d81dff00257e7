#!/usr/bin/env python3
"""Tests the load client against a server that says exactly what the test wants."""

import json
import socket
import threading
import unittest

import load
import process


def event(data):
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def delta(**fields):
    return event({"choices": [{"index": 0, "delta": fields}]})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9,
                                        "prompt_tokens_details": {"cached_tokens": 4}}})
DONE = event(b"[DONE]")


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def raw(*chunks):
    return (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"".join(chunk(data) for data in chunks) + b"0\r\n\r\n")


class Canned:
    """Answers every connection with the same bytes, in pieces of one size."""

    def __init__(self, answer, piece=1 << 20):
        self.answer, self.piece, self.requests = answer, piece, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.requests.append(connection.recv(1 << 16))
                for at in range(0, len(self.answer), self.piece):
                    connection.sendall(self.answer[at:at + self.piece])


class DriveTest(unittest.TestCase):
    def drive(self, answer, users=1, requests=1, piece=1 << 20):
        server = Canned(answer, piece)
        self.addCleanup(server.socket.close)
        answers = load.drive(server.port, [[{"n": i} for i in range(requests)]] * users)
        self.assertEqual(len(server.requests), users * requests)
        return answers

    def test_counts_only_deltas_that_say_something(self):
        answer = raw(delta(role="assistant", content=""), delta(content="a"), delta(),
                     delta(reasoning_content="b"), delta(tool_calls=[{}]), USAGE, DONE)
        (found,), = self.drive(answer)
        self.assertEqual(len(found.deltas), 3)
        self.assertEqual((found.prompt_tokens, found.cached_tokens, found.completion_tokens),
                         (5, 4, 9))

    def test_events_may_be_cut_anywhere(self):
        text = delta(content="a") + delta(content="b") + USAGE + DONE
        for size in (1, 7, len(text)):
            answer = raw(*[text[at:at + size] for at in range(0, len(text), size)])
            for piece in (3, 1 << 20):
                (found,), = self.drive(answer, piece=piece)
                self.assertEqual(len(found.deltas), 2)
                self.assertGreaterEqual(found.deltas[1], found.deltas[0])

    def test_every_user_sends_its_requests(self):
        answers = self.drive(raw(delta(content="a"), USAGE, DONE), users=3, requests=4)
        self.assertEqual([len(of_user) for of_user in answers], [4, 4, 4])

    def test_failures_are_told(self):
        for answer, words in [
                (b"HTTP/1.1 429 Too Many Requests\r\n\r\nfull", "429 Too Many Requests full"),
                (raw(event({"error": {"message": "broken"}})), "broken"),
                (raw(delta(content="a"), DONE), "expected deltas, usage"), (b"", "no answer")]:
            with self.assertRaisesRegex(process.Failed, words):
                self.drive(answer)


class DefinitionsTest(unittest.TestCase):
    def answer(self, start, deltas, n):
        return load.Answer(start, deltas, 10, 0, n)

    def test_times(self):
        answer = self.answer(1.0, [1.5, 2.0, 3.0], 4)
        self.assertEqual(answer.ttft, 0.5)
        self.assertEqual(answer.tpot, 0.5)  # 1.5 s for three more tokens
        self.assertEqual(answer.gaps, [0.5, 1.0])

    def test_percentile(self):
        self.assertEqual(load.percentile([4, 1, 3, 2], 0.5), 2)
        self.assertEqual(load.percentile([4, 1, 3, 2], 0.95), 4)
        self.assertEqual(load.percentile(range(1, 101), 0.95), 95)
        self.assertEqual(load.percentile([7], 0.99), 7)

    def test_together(self):
        answers = [self.answer(0, [1, 2, 3, 4], 4), self.answer(0, [2, 3, 4, 5], 4)]
        # From 2 to 4: two tokens of each.
        self.assertEqual(load.together_tok_s(answers), 2)

    def test_round(self):
        found = load.Round.of([[self.answer(0, [1, 2], 2), self.answer(2, [3, 4], 2)]])
        self.assertEqual((found.tok_s, found.ttft_p50, found.tpot_p95, found.prompt_tokens),
                         (1, 1, 1, 20))


if __name__ == "__main__":
    unittest.main()
