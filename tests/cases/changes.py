"""Wrong outcomes, made of a right one: each must be noticed, or a comparison is none."""

from tests.cases.outcome import compare


INSTEAD_OF_NULL = {"error": {"kind": "stalled"}, "finish": "error", "usage": {"input": 1}}


def unnoticed(outcome, play):
    """Return the changes to an outcome that a comparison would not notice."""
    beside = {key: outcome[key] for key in outcome if key == "partial"}  # a finish depends on it
    changes = [{key: changed} for key in outcome for changed in _changed(key, outcome[key])]
    return [each for each in [*changes, {"surprise": 1}] if _holds(beside | each, play)]


def _holds(outcome, play):
    try:
        compare(outcome, play)
    except AssertionError:
        return False
    return True


def _changed(key, value):
    match value:
        case None:
            yield INSTEAD_OF_NULL[key]
        case bool():
            yield not value
        case int() | float():
            yield -1
        case str():
            yield f"{value}?"
        case [int(), *_]:
            yield [each * 1000 for each in value]
        case list() if key == "one_of":
            yield [each | {"text": "?"} for each in value]
        case list():
            yield [*value, value[-1] if value else {"id": "?", "name": "?"}]
            for at, each in enumerate(value):
                yield from (
                    [*value[:at], changed, *value[at + 1 :]] for changed in _changed(key, each)
                )
        case dict():
            yield value | {"surprise": 1}
            for name, each in value.items():
                yield from (value | {name: changed} for changed in _changed(name, each))
