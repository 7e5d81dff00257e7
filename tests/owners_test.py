#!/usr/bin/env python3
"""Who may see which stored response of `sluice serve`, with a tiny model.

Usage: owners_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import json
from pathlib import Path
import sys
import tempfile
import unittest

import serve_test
from websocket_client import WebSocketClient

URL = "/v1/responses"


class OwnerTest(unittest.TestCase):
    """Responses of one API key do not exist for another."""

    def test_keys_do_not_see_each_other(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
            file.write("first name=ann\nsecond name=bob\n")
            file.flush()
            server = serve_test.Server("--model", serve_test.GOLDEN / "llama/model.gguf",
                                       "--threads", 1, "--api-key-file", file.name)
        self.addCleanup(server.process.kill)
        body = {"input": "Hello there", "max_output_tokens": 8, "ignore_eos": True}

        def ask(key, method, path, status, body=None):
            got, _, text = server.send(method, path, body, {"Authorization": f"Bearer {key}"})
            self.assertEqual(got, status, text)
            return json.loads(text)

        mine = ask("first", "POST", URL, 200, body)["id"]
        long = body | {"background": True, "max_output_tokens": 480}
        running = ask("first", "POST", URL, 200, long)["id"]
        for id in [mine, running]:
            for method, path in [("GET", f"{URL}/{id}"), ("GET", f"{URL}/{id}/input_items"),
                                 ("POST", f"{URL}/{id}/cancel"), ("DELETE", f"{URL}/{id}")]:
                got = ask("second", method, path, 404)["error"]
                self.assertEqual(got, ask("second", method, path.replace(id, "resp_0"), 404)["error"]
                                 | {"message": f"Response with id '{id}' not found."})
            error = ask("second", "POST", URL, 400, body | {"previous_response_id": id})["error"]
            self.assertEqual(error["code"], "previous_response_not_found")
        item = ask("first", "GET", f"{URL}/{mine}/input_items", 200)["data"][0]["id"]
        reference = body | {"input": [{"type": "item_reference", "id": item}]}
        ask("second", "POST", URL, 404, reference)
        ask("first", "POST", URL, 200, reference)
        for key, kind in [("second", "error"), ("first", "response.created")]:
            client = WebSocketClient(server.port, api_key=key)
            client.send(input="More", previous_response_id=mine)
            self.assertEqual(client.event()["type"], kind)
            client.close()
        ask("first", "POST", f"{URL}/{running}/cancel", 200)
        ask("first", "DELETE", f"{URL}/{mine}", 200)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
