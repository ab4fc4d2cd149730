"""Which line of a file says what."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from tidegate.daemon.config.places import lines_of


TEXT = '''\
# a comment = 1
listen = "a" # [not.a.table]

keys = [
  "env:A", # ] = 1
  """b = 1""",
]
words = """
heartbeat_s = 1
[policy]
"""
other = \'\'\'
x = 1\'\'\'
[endpoints.main]
  wire = 'chat'
headers = { a = "b", "c.d" = "e" }
policy.retries = 1
"quoted key" = 2
[endpoints."a.b"]
[[many]]
x = 1
[[many]]
[ policy ]
'''


def test_each_key_and_table_has_the_line_that_names_it_first():
    assert lines_of(TEXT) == {
        ("listen",): 2,
        ("keys",): 4,
        ("words",): 8,
        ("other",): 12,
        ("endpoints",): 14,
        ("endpoints", "main"): 14,
        ("endpoints", "main", "wire"): 15,
        ("endpoints", "main", "headers"): 16,
        ("endpoints", "main", "headers", "a"): 16,
        ("endpoints", "main", "headers", "c.d"): 16,
        ("endpoints", "main", "policy"): 17,
        ("endpoints", "main", "policy", "retries"): 17,
        ("endpoints", "main", "quoted key"): 18,
        ("endpoints", "a.b"): 19,
        ("many",): 20,
        ("policy",): 23,
    }


def test_ends_of_lines_are_those_of_any_system():
    assert lines_of(TEXT.replace("\n", "\r\n")) == lines_of(TEXT)


PIECES = st.sampled_from(
    [
        "# a = 1",
        "",
        "{} = 1",
        "{} = [\n 1,\n\n # b = 2\n]",
        '{} = """\n[x]\nb = 2\n"""',
        "{} = '''a\n'''",
        "[{}]",
        "[{}.deep]",
        "{}.deep = 1",
        "{} = {{ a = 1 }}",
    ]
)


@given(st.lists(PIECES))
def test_lines_are_those_in_which_the_names_stand(pieces):
    # Every name is unique, so that it stands where the text has it.
    statements = [piece.format(f"name{number}_") for number, piece in enumerate(pieces)]
    text = "\n".join(statements)
    tomllib.loads(text)
    lines = lines_of(text)

    rows = enumerate(text.split("\n"), 1)
    stand = {f"name{number}_": number for number, piece in enumerate(pieces) if "{}" in piece}
    first = {name: at for at, row in rows for name in stand if name in row}
    assert {place[-1]: at for place, at in lines.items() if place[-1] in stand} == first
