"""Files appear whole or not at all, and what stands at their place is treated as what it is."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from pacbound.atomic_files import atomic_file, is_standard_output, is_stream
from pacbound.errors import UnwritableFileError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of POSIX")


def write(path: str | os.PathLike[str], data: bytes = b"new") -> None:
    with atomic_file(path) as file:
        file.write(data)


def fail_half_way(path: Path, error: type[BaseException]) -> None:
    with atomic_file(path) as file:
        file.write(b"half")
        raise error


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with atomic_file(target) as file:
        file.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(error):
        fail_half_way(target, error)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o664, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, permissions: int) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    target.chmod(permissions)
    write(target)
    assert (target.read_bytes(), mode(target)) == (b"new", permissions)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs the superuser")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    os.chown(target, 12345, 23456)
    write(target)
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_the_umask(
    tmp_path: Path, mask: int, expected: int
) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "out")
    finally:
        os.umask(before)
    assert mode(tmp_path / "out") == expected


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real"
    real.write_bytes(b"old")
    real.chmod(0o600)
    (tmp_path / "first").symlink_to("there/real")
    (tmp_path / "second").symlink_to("first")
    write(tmp_path / "second")
    assert (real.read_bytes(), mode(real)) == (b"new", 0o600)
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert sorted(tmp_path.rglob("*.tmp")) == []


def test_a_link_to_nothing_gets_its_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "later")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "later").read_bytes() == b"new"


def test_the_null_device_stays_a_device() -> None:
    before = Path("/dev/null").stat()
    write("/dev/null")
    after = Path("/dev/null").stat()
    assert stat.S_ISCHR(after.st_mode)
    assert (after.st_ino, after.st_rdev) == (before.st_ino, before.st_rdev)
    assert is_stream("/dev/null")


def test_a_device_is_written_to_where_terminals_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Windows."""
    monkeypatch.delattr(os, "O_NOCTTY")
    write("/dev/null")


def test_a_pipe_stays_a_pipe_and_takes_formats_that_ask_for_their_position(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with atomic_file(pipe) as file:
        np.savez(file, a=np.arange(100_000))
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]
    (tmp_path / "copy.npz").write_bytes(found[0])
    with np.load(tmp_path / "copy.npz") as copy:
        assert np.array_equal(copy["a"], np.arange(100_000))


@pytest.mark.parametrize(
    ("name", "redirection"),
    [
        ("/dev/stdout", "pipe"),
        ("/dev/stdout", "file"),
        ("/dev/stdout", "append"),
        ("/proc/self/fd/1", "append"),
        ("link", "append"),
    ],
)
def test_standard_output_keeps_its_place(tmp_path: Path, name: str, redirection: str) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    out = tmp_path / "captured"
    out.write_bytes(b"before\n")
    program = (
        "import sys; from pacbound.atomic_files import atomic_file\n"
        "print('first', flush=True)\n"
        f"with atomic_file({name!r}) as file: file.write(b'second\\n')\n"
        "print('third', flush=True)\n"
    )
    command = [sys.executable, "-c", program]
    if redirection == "pipe":
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    else:
        with out.open("ab" if redirection == "append" else "wb") as file:
            subprocess.run(command, cwd=tmp_path, stdout=file, check=True)
        found = out.read_bytes()
    kept = b"before\n" if redirection == "append" else b""
    assert found == kept + b"first\nsecond\nthird\n"


def test_standard_output_is_known_by_all_its_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    for name in ("/dev/stdout", "/proc/self/fd/1", tmp_path / "link"):
        assert is_standard_output(name)
    for name in ("/dev/null", tmp_path, "out.json", "/dev/stderr"):
        assert not is_standard_output(name)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", r"^\. is a folder: name a file in it\.$"),
        ("folder", "^folder is a folder"),
        ("folder/", "^folder/ is a folder"),
        ("new/", "^new/ names a folder: name a file in it"),
        ("", "is a folder"),
        ("none/x.json", "^none/x.json cannot be written: there is no folder .*none"),
        ("file/under", "^file/under cannot be written: .*file is not a folder"),
        ("file/under/it", "^file/under/it cannot be written: "),
        ("protected", "^protected is there and has no write permission.*chmod"),
        ("to_protected", "^to_protected is there and has no write permission"),
        ("round", "^round cannot be written: Too many levels of symbolic links"),
        ("s3://bucket/x.json", "^s3://bucket/x.json is an address: only local files are written"),
        (Path("s3://bucket/x.json"), "^s3://bucket/x.json is an address"),
        ("x" * 300, "cannot be written: File name too long"),
        ("/dev/fd/999", "^/dev/fd/999 cannot be written: Bad file descriptor"),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_bytes(b"old")
    Path("protected").write_bytes(b"old")
    Path("protected").chmod(0o400)
    Path("to_protected").symlink_to("protected")
    Path("round").symlink_to("round")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UnwritableFileError, match=message) as caught:
        write(path)
    assert isinstance(caught.value, OSError)
    assert sorted(tmp_path.rglob("*")) == before
    assert Path("protected").read_bytes() == b"old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_of_the_path_that_was_named() -> None:
    with pytest.raises(UnwritableFileError, match=r"^/dev/full cannot be written: No space left"):
        write("/dev/full")


def test_errors_of_whoever_writes_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="elsewhere"), atomic_file(tmp_path / "out"):
        (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(BrokenPipeError), atomic_file(tmp_path / "out"):
        raise BrokenPipeError(errno.EPIPE, "closed")
    assert list(tmp_path.iterdir()) == []
