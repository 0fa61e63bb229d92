"""client.py matches the output of the generator, and the generator rejects an aio.py that its rules do not cover."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcp_client
from tools.generate_blocking import COMMAND, NAMES, PASSAGES, GeneratorError, generate

# ./check tests the installed package, with no sources beside the tests.
PACKAGE = Path(mcp_client.__file__).parent
AIO = (PACKAGE / "aio.py").read_text(encoding="utf-8")


def test_the_blocking_client_is_up_to_date() -> None:
    if (PACKAGE / "client.py").read_text(encoding="utf-8") != generate(AIO):
        pytest.fail(f"client.py is not what aio.py generates; run in clients/python: {COMMAND}", pytrace=False)


@pytest.mark.parametrize("passage", [old for old, _ in PASSAGES])
def test_a_missing_passage_is_an_error(passage: str) -> None:
    with pytest.raises(GeneratorError, match="found it 0 times"):
        generate(AIO.replace(passage, ""))


def test_a_repeated_passage_is_an_error() -> None:
    with pytest.raises(GeneratorError, match="found it 2 times"):
        generate(AIO + "import inspect\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_name_is_an_error(name: str) -> None:
    with pytest.raises(GeneratorError, match=f"found none of them: {name}$"):
        generate(AIO.replace(name, "other"))


@pytest.mark.parametrize("line", ["asyncio.run(main())", "x.__anext__()", "# Wait for the coroutine.", '"await"'])
def test_an_asynchronous_name_without_a_rule_is_an_error(line: str) -> None:
    with pytest.raises(GeneratorError, match="no rule covers"):
        generate(f"{AIO}{line}\n")


def test_strings_and_comments_are_left_alone() -> None:
    assert generate(AIO + 'x = "aread"  # aclose\n').endswith('x = "aread"  # aclose\n')
