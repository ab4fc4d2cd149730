"""A virtual provider: one client is shared by all of its streams; imported by workers."""

import httpx

from tidegate.custom import Finish, hang_up


class Facade:
    def __init__(self):
        self.client = httpx.Client(timeout=None)

    def stream(self, payload):
        return Handle(self.client, payload)

    def close(self):
        self.client.close()


class Handle:
    """What one request has of its own."""

    def __init__(self, client, payload):
        self.notes = payload["notes"]
        self.note("created")
        self.response = client.send(
            client.build_request("POST", payload["url"], json={}), stream=True
        )

    def __iter__(self):
        try:
            yield from self.response.iter_lines()
            yield Finish()
        finally:
            self.response.close()

    def close(self):
        self.note("stream closed")
        hang_up(self.response)

    def note(self, words):
        with open(self.notes, "a") as notes:  # noqa: PTH123 - as a user would
            notes.write(f"{words}\n")
