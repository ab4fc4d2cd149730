"""Opening a journal: it is ours, sound and private, or the error says what to do."""

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys

import pytest

from tests.daemon.journal.conftest import START_S
from tidegate.daemon.journal import JournalError
from tidegate.errors import ConfigurationError, TidegateError
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import TurnCompleted


HOLDER = """
import sys
from tidegate.daemon.journal import Journal
journal = Journal.open(sys.argv[1], keep_s=1, bytes_max=1 << 30, idempotency_keep_s=1,
                       on_trouble=print)
print(journal.epoch, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold(path):
    """Have another process open the journal; returns it, once it has."""
    holders = []

    def start():
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        holders.append(holder)
        holder.epoch = int(holder.stdout.readline())
        return holder

    yield start
    for holder in holders:
        holder.kill()
        holder.communicate()


def modes(path):
    return {
        each.name: stat.S_IMODE(each.stat().st_mode)
        for each in path.parent.iterdir()
        if each.name.startswith(path.name)
    }


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_files_are_for_their_owner_alone_whatever_the_umask(new_pen, path, started, umask):
    before = os.umask(umask)
    try:
        pen = new_pen()
        pen.begin("turn_1")
        pen.write("turn_1", started("turn_1"))
    finally:
        os.umask(before)

    assert modes(path) == {
        "journal.db": 0o600,
        "journal.db-wal": 0o600,
        "journal.db-shm": 0o600,
        "journal.db.lock": 0o600,
    }


def test_file_that_others_could_read_is_closed_to_them(new_pen, path):
    new_pen().journal.close()
    path.chmod(0o644)
    new_pen()

    assert set(modes(path).values()) == {0o600}


def test_epoch_grows_at_each_opening(new_pen, hold):
    epochs = []
    for _ in range(3):
        pen = new_pen()
        epochs.append(pen.journal.epoch)
        pen.journal.close()
    holder = hold()
    holder.send_signal(signal.SIGKILL)
    holder.wait()

    assert epochs == [1, 2, 3]
    assert holder.epoch == 4
    assert new_pen().journal.epoch == 5


def test_second_daemon_is_refused_with_the_first_ones_process(hold, new_pen, path):
    holder = hold()
    with pytest.raises(JournalError, match=rf"{path}: process {holder.pid} writes it.*--journal"):
        new_pen()
    holder.kill()
    holder.wait()

    assert new_pen().journal.epoch == 2


def test_second_one_in_the_same_process_is_refused_and_harms_nobody(pen, new_pen, started):
    pen.begin("turn_1")
    with pytest.raises(JournalError, match=f"process {os.getpid()} writes it"):
        new_pen()
    pen.write("turn_1", started("turn_1"))

    assert pen.journal.turn("turn_1").state == "running"


def test_errors_are_errors_of_the_configuration():
    assert issubclass(JournalError, ConfigurationError)
    assert issubclass(JournalError, TidegateError)


def test_missing_folder_is_named(open_journal, tmp_path):
    with pytest.raises(JournalError, match=rf"no folder {tmp_path}/nowhere; make it"):
        open_journal(tmp_path / "nowhere" / "journal.db")
    with pytest.raises(JournalError, match="this is a folder"):
        open_journal(tmp_path)


def test_folder_that_cannot_be_written_is_named(open_journal):
    # Not even root can make a file there.
    with pytest.raises(JournalError, match=r"^journal /sys/journal\.db: .* cannot be written \("):
        open_journal("/sys/journal.db")


def test_disk_without_room_for_the_lock_is_named(path):
    no_room = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    done = subprocess.run(
        [sys.executable, "-c", no_room + HOLDER, str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=50,
    )

    last = done.stderr.splitlines()[-1]
    assert f"JournalError: journal {path}: {path.name}.lock beside it cannot be written (" in last
    assert "free space on its file system" in last


def test_file_that_is_no_database_is_refused_and_left_alone(open_journal, path):
    path.write_text("notes of a user, longer than any header of a database would be" * 100)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=rf"{path}: it is damaged \(file is not a database\)"):
        open_journal()

    assert path.read_bytes() == before


def test_database_of_another_program_is_refused_and_left_alone(open_journal, path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE turns (id TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match="a database of another program; give another file"):
        open_journal()

    assert path.read_bytes() == before


def test_newer_schema_is_refused(new_pen, path):
    new_pen().journal.close()
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 7")
    newer.close()
    with pytest.raises(JournalError, match=r"another tidegate \(schema 7, and this one reads 1\)"):
        new_pen()


@pytest.mark.parametrize("place", [0, 5 * 4096], ids=["header", "middle"])
def test_damage_is_found_at_once(new_pen, path, started, words, place):
    pen = new_pen()
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, *["text" * 20] * 3000))
    end = TurnCompleted("turn_1", 1, 3001, START_S, answer=Answer())
    pen.write("turn_1", end)
    pen.journal.close()
    with path.open("r+b") as file:
        # As it happens where a socket is given the number of the file.
        for start in range(place, place + 40_000, 4096):
            file.seek(start)
            file.write(b"\x17\x03\x03\x00\x13" + os.urandom(24))
    with pytest.raises(JournalError, match=rf"{re.escape(str(path))}: it is damaged .*\.recover"):
        new_pen()


def test_events_that_are_none_are_damage(new_pen, path, started):
    pen = new_pen()
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"))
    pen.journal.close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE events SET data = ?", (b'{"type":"unknown.event"}\n',))
        other.execute("UPDATE turns SET state = 'running', ended_at = NULL")
    other.close()
    with pytest.raises(JournalError, match=r"it is damaged \(what it holds of turn turn_1: "):
        new_pen()


def test_log_without_its_database_is_not_thrown_away(open_journal, path):
    log = path.with_name("journal.db-wal")
    log.write_bytes(b"something")
    with pytest.raises(JournalError, match=r"gone or empty, but journal\.db-wal beside it holds"):
        open_journal()

    assert log.read_bytes() == b"something"
    assert not path.exists()


def test_refused_opening_leaves_no_lock(open_journal, path):
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(JournalError):
        open_journal()
    path.unlink()

    assert open_journal().epoch == 1


def test_held_by_the_transaction_of_another_program(new_pen, path):
    new_pen().journal.close()
    shell = sqlite3.connect(path, isolation_level=None)
    shell.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(JournalError, match="another program holds it"):
            new_pen()
    finally:
        shell.close()
