#!/usr/bin/env python3
"""What becomes of answers under way when `sluice serve` is told to end, with a tiny model.

Usage: drain_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

from concurrent.futures import ThreadPoolExecutor
import json
from pathlib import Path
import subprocess
import sys
import tempfile
import unittest

import serve_test
from serve_test import CHAT, TEXT, USER, PATIENCE
from websocket_client import WebSocketClient

RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
LONG = {"max_tokens": 480, "ignore_eos": True}


class DrainTest(unittest.TestCase):
    def start(self, *flags):
        server = serve_test.Server("--model", serve_test.GOLDEN / "llama/model.gguf", "--threads",
                                   1, *flags)
        self.addCleanup(server.process.stdout.close)
        self.addCleanup(server.process.kill)
        return server

    def test_lets_answers_finish(self):
        server = self.start()
        # Many choices, so that the answer is under way for a while.
        body = {"prompt": "x", "stream": True, "n": 100 // PATIENCE} | LONG
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(server.send, "POST", TEXT, body)
            server.wait_for("sluice_requests_open", 1)
            self.assertEqual(server.stop(), 0)
            self.assertTrue(running.result()[2].endswith("data: [DONE]\n\n"))

    def test_waits_for_background_responses(self):
        with tempfile.TemporaryDirectory() as folder:
            db = Path(folder) / "sluice.db"
            server = self.start("--db", db)
            ids = [server.post(RESPONSES, {"input": "x", "background": True, "ignore_eos": True,
                                           "max_output_tokens": 400})["id"] for _ in range(8)]
            self.assertEqual(server.stop(), 0)
            used = self.books(db)
            self.assertEqual((used["requests"], used["completion_tokens"]), (8, 8 * 400))
            server = self.start("--db", db)
            for id in ids:
                response = json.loads(server.send("GET", f"{RESPONSES}/{id}")[2])
                self.assertEqual(response["status"], "incomplete")
                self.assertEqual(response["usage"]["output_tokens"], 400)
            self.assertEqual(server.stop(), 0)

    def test_tells_those_whose_time_is_up(self):
        with tempfile.TemporaryDirectory() as folder:
            db = Path(folder) / "sluice.db"
            server = self.start("--db", db, "--max-users", 1, "--drain-seconds", 0)
            response = {"input": "x", "ignore_eos": True, "max_output_tokens": 400}
            # The first four take turns for seconds; the others wait behind them.
            asked = [(TEXT, {"prompt": ["x"] * 100, "stream": True} | LONG)] * 4
            asked += [(TEXT, {"prompt": "x"} | LONG), (CHAT, {"messages": USER} | LONG),
                      (CHAT, {"messages": USER, "stream": True} | LONG),
                      (MESSAGES, {"messages": USER} | LONG),
                      (RESPONSES, response), (RESPONSES, response | {"stream": True}),
                      (serve_test.EMBEDDINGS, {"input": "x"})]
            with ThreadPoolExecutor(len(asked)) as pool:
                answers = []
                for n, (path, body) in enumerate(asked, 1):
                    answers.append(pool.submit(server.send, "POST", path, body))
                    server.wait_for("sluice_requests_open", n)
                socket = WebSocketClient(server.port)
                socket.send(**response)
                background = server.post(RESPONSES, response | {"background": True})["id"]
                self.assertEqual(server.stop(), 0)
                answers = [answer.result() for answer in answers]
            for (path, body), (status, headers, text) in zip(asked, answers):
                self.check_told(path, body, status, headers, text)
            events = [socket.event()]
            while events[-1]["type"] != "response.failed":
                events.append(socket.event())
            self.assertEqual(events[-1]["response"]["error"]["code"], "draining")
            socket.close()
            used = self.books(db)  # what was never begun has used nothing
            self.assertLessEqual(used["requests"], 4)
            self.assertGreater(used["completion_tokens"], 0)
            server = self.start("--db", db)
            stored = json.loads(server.send("GET", f"{RESPONSES}/{background}")[2])
            self.assertEqual((stored["status"], stored["error"]["code"]), ("failed", "draining"))
            self.assertEqual(server.stop(), 0)

    def check_told(self, path, body, status, headers, text):
        if not body.get("stream"):
            self.assertEqual((status, headers["Retry-After"] is not None), (503, True), text)
            error = json.loads(text)["error"]
            expected = {"type": "overloaded_error"} if path == MESSAGES else {"code": "draining"}
            self.assertEqual(error | expected, error)
            return
        self.assertEqual(status, 200)
        if path == RESPONSES:
            last = json.loads(text.split("\n\n")[-3].partition("\ndata: ")[2])
            self.assertEqual(last["type"], "response.failed")
            error = last["response"]["error"]
        else:
            self.assertNotIn("[DONE]", text)
            error = json.loads(text.split("\n\n")[-2].removeprefix("data: "))["error"]
        self.assertEqual(error["code"], "draining")

    def books(self, db):
        command = [serve_test.SLUICE, "usage", "--json", "--db", db]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)



if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
