"""A stream that is made of another turn's answer."""

from tidegate.custom import Finish


def inner():
    raise NotImplementedError("the test says what it is")


class Mixture:
    def stream(self, _payload):
        yield "inner said "
        yield inner().text
        yield Finish()
