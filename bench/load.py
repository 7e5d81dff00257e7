"""A load client for streamed chat completions, and the definitions that benchmark clients publish.

TTFT: from sending the request to the first delta that is not empty. TPOT: (last delta - first
delta) / (completion_tokens - 1), tokens as the server's usage says. Gap: between two deltas of a
stream. Everything is measured first and parsed afterwards, so that the client costs the server's
cores as little as it can.
"""

import bisect
import dataclasses
import itertools
import json
import select
import socket
import statistics
import time

from process import Failed

TIMEOUT_S = 300


def percentile(values, share):
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


@dataclasses.dataclass
class Answer:
    start: float                # seconds on one clock
    deltas: list                # arrival of each delta that is not empty
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int

    @property
    def ttft(self):
        return self.deltas[0] - self.start

    @property
    def tpot(self):
        return (self.deltas[-1] - self.deltas[0]) / max(1, self.completion_tokens - 1)

    @property
    def gaps(self):
        return [b - a for a, b in zip(self.deltas, self.deltas[1:])]


class Stream:
    """One connection with a request under way: bytes and when they came."""

    def __init__(self, port, body):
        text = json.dumps(body).encode()
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reads = []  # (moment, bytes)
        self.start = time.perf_counter()
        self.socket.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            b"Content-Type: application/json\r\nConnection: close\r\n"
                            b"Content-Length: %d\r\n\r\n" % len(text) + text)

    def read(self):
        """False at the end."""
        data = self.socket.recv(1 << 16)
        if not data:
            self.socket.close()
            return False
        self.reads.append((time.perf_counter(), data))
        return True

    def _events(self):
        """(arrival, data) of each event."""
        ends = list(itertools.accumulate(len(data) for _, data in self.reads))
        raw = b"".join(data for _, data in self.reads)
        head, separator, body = raw.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failed((head.splitlines() or [b"no answer"])[0].decode() + " "
                         + body[:300].decode(errors="replace"))
        text, pieces = dechunk(body, len(head) + len(separator))
        end = 0
        for event in text.split(b"\n\n")[:-1]:
            end += len(event) + 2
            raw_end = pieces[bisect.bisect_left(pieces, (end, 0))][1]
            moment = self.reads[bisect.bisect_left(ends, raw_end)][0]
            yield moment, event.removeprefix(b"data: ")

    def answer(self):
        deltas, usage, done = [], None, False
        for moment, data in self._events():
            if data == b"[DONE]":
                done = True
                continue
            chunk = json.loads(data)
            if "error" in chunk:
                raise Failed(chunk["error"]["message"])
            usage = chunk.get("usage") or usage
            if any(says_something(choice["delta"]) for choice in chunk["choices"]):
                deltas.append(moment)
        if not (done and usage and deltas):
            raise Failed("expected deltas, usage and [DONE] in the stream")
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        return Answer(self.start, deltas, usage["prompt_tokens"], cached,
                      usage["completion_tokens"])


def says_something(delta):
    return any(delta.get(key) for key in ("content", "reasoning_content", "tool_calls"))


def dechunk(body, offset):
    """The text of a chunked body, and for each chunk (end in the text, end in the raw answer);
    `offset`: where the body starts in it."""
    text, pieces, at = bytearray(), [], 0
    while at < len(body):
        line = body.index(b"\r\n", at)
        size = int(body[at:line].split(b";")[0], 16)
        text += body[line + 2:line + 2 + size]
        at = line + 2 + size + 2
        if size == 0:
            break
        pieces.append((len(text), offset + at - 2))
    return bytes(text), pieces


def drive(port, bodies_of_users):
    """Every user sends its requests one after the other, all users at once. Returns one list of
    Answers per user."""
    poll = select.epoll()  # what `selectors` adds to it doubles the client's cost
    waiting = [list(bodies) for bodies in bodies_of_users]
    streams = [[] for _ in bodies_of_users]
    under_way = {}  # by descriptor

    def begin(user):
        stream = Stream(port, waiting[user].pop(0))
        streams[user].append(stream)
        under_way[stream.socket.fileno()] = user, stream
        poll.register(stream.socket, select.EPOLLIN)

    for user in range(len(waiting)):
        begin(user)
    while under_way:
        ready = poll.poll(TIMEOUT_S)
        if not ready:
            raise Failed(f"no byte for {TIMEOUT_S} s")
        for descriptor, _ in ready:
            user, stream = under_way[descriptor]
            if stream.read():
                continue
            del under_way[descriptor]  # epoll has forgotten what was closed
            if waiting[user]:
                begin(user)
    return [[stream.answer() for stream in of_user] for of_user in streams]


@dataclasses.dataclass
class Round:
    """What one round of load shows. Seconds, but for the rates."""
    tok_s: float         # of all users, from the first request to the last token
    ttft_p50: float
    ttft_p95: float
    tpot_p50: float
    tpot_p95: float
    gap_p99_to_median: float
    decode_tok_s: float  # while every user's first answer was being written
    prompt_tokens: int

    @classmethod
    def of(cls, answers_of_users):
        answers = [answer for of_user in answers_of_users for answer in of_user]
        start = min(answer.start for answer in answers)
        end = max(answer.deltas[-1] for answer in answers)
        ttfts = [answer.ttft for answer in answers]
        tpots = [answer.tpot for answer in answers]
        gaps = [gap for answer in answers for gap in answer.gaps]
        return cls(sum(answer.completion_tokens for answer in answers) / (end - start),
                   percentile(ttfts, 0.5), percentile(ttfts, 0.95), percentile(tpots, 0.5),
                   percentile(tpots, 0.95),
                   percentile(gaps, 0.99) / max(percentile(gaps, 0.5), 1e-9),
                   together_tok_s([of_user[0] for of_user in answers_of_users]),
                   sum(answer.prompt_tokens for answer in answers))


def together_tok_s(answers):
    """Tokens a second from when all have their first delta until one has its last."""
    start = max(answer.deltas[0] for answer in answers)
    end = min(answer.deltas[-1] for answer in answers)
    if end <= start:
        return 0.0
    n = sum(answer.completion_tokens / len(answer.deltas)
            * sum(start < moment <= end for moment in answer.deltas) for answer in answers)
    return n / (end - start)


def medians(rounds):
    """Field name -> median over rounds."""
    return {field.name: statistics.median(getattr(r, field.name) for r in rounds)
            for field in dataclasses.fields(Round)}
