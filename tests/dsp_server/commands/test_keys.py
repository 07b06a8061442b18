"""``hbrt keys`` and the flags of ``hbrt relay`` that go with it."""

from __future__ import annotations

from tests.shared import Shell


def test_keys_are_made_and_listed(shell: Shell) -> None:
    said = shell.good("keys", "new", "--name", "alice", "keys")
    where = shell.cwd / "keys"
    assert said == (
        f"Made the relay's keys in {where}: hbrt relay --listen tcp://HOST:PORT --keys {where}\n"
        f"Made keys for alice: move {where / 'for-alice'} to its machine, and set HBRT_KEYS to it there.\n"
    )
    assert shell.good("keys", "new", "keys") == (
        f"{where} already has a relay's keys; nothing changed. use --name NAME to add a program.\n"
    )
    (line,) = shell.good("keys", "list", "keys").splitlines()
    name, key = line.split("  ")
    assert (name, len(key)) == ("alice", 40)


def test_a_name_that_is_taken_and_a_directory_without_keys(shell: Shell) -> None:
    shell.good("keys", "new", "--name", "alice", "keys")
    again = shell.hbrt("keys", "new", "--name", "alice", "keys")
    assert (again.returncode, "already has a key named alice" in again.stderr) == (2, True)
    none = shell.hbrt("keys", "list", "elsewhere")
    assert none.returncode != 0
    assert "No such key" in none.stderr


def test_a_name_that_is_none_makes_nothing(shell: Shell) -> None:
    code, said = shell.refused("keys", "new", "--name", "a/b", shell.cwd / "keys")
    assert (code, said) == (
        2,
        "Error: 'a/b' is not a key name: use up to 32 letters, digits, '.', '_' and '-'.\n",
    )
    assert list(shell.cwd.iterdir()) == []


def test_a_detached_relay_listens_and_ends_with_its_board(shell: Shell) -> None:
    shell.good("start")
    said = shell.good("relay", "--listen", "tcp://127.0.0.1:0", "--detach")
    address = said.partition("listens at ")[2].partition(": process")[0]
    assert address.startswith("tcp://127.0.0.1:")
    shell.environment["HBRT_BOARD"] = address
    program = "import arm_client, sys; print(arm_client.connect().ping() > 0)"
    assert shell.python("-c", program).stdout == "True\n"
    refused = shell.hbrt("restart")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"The board at {address} is on another machine" in refused.stderr
    assert f"a relay answers at {address}, without keys" in " ".join(shell.hbrt("doctor").stdout.split())
    del shell.environment["HBRT_BOARD"]
    assert "dsp_relay_server" in shell.good("status", "--clients")
    shell.good("stop")


def test_flags_that_do_not_fit(shell: Shell) -> None:
    shell.good("start")
    for arguments, why in (
        (("--listen", "tcp://*:0"), "Without keys a relay listens only on loopback"),
        (("--listen", "here"), "is not an address to listen at"),
        (("--keys", "keys"), "it needs --listen tcp://HOST:PORT"),
        (("--listen", "tcp://*:0", "--keys", "keys"), "No such key"),
    ):
        answer = shell.hbrt("relay", *arguments)
        assert answer.returncode != 0
        assert (answer.stdout, why in answer.stderr) == ("", True), answer
