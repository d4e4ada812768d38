"""Audit events, their delivery, and the sinks."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import warnings
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest

from sandboxio.audit import (
    AuditConfig,
    AuditEvent,
    AuditSink,
    FileSink,
    LoggingSink,
    NoopSink,
    QueueSink,
    deliver,
)
from sandboxio.errors import AuditSinkError, AuditSinkWarning, ConfigurationError


def make_event(name: str = "run", **values: Any) -> AuditEvent:
    return AuditEvent(
        ts=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        event=name,
        backend="fake",
        isolation="container",
        duration_ms=7,
        **values,
    )


class BrokenSink:
    async def emit(self, event: AuditEvent) -> None:
        raise OSError("no space left")


class OtherBrokenSink:
    async def emit(self, event: AuditEvent) -> None:
        raise ValueError("no such column")


class StuckSink:
    async def emit(self, event: AuditEvent) -> None:
        await anyio.sleep_forever()


def test_an_event_is_plain_json() -> None:
    event = make_event(argv=("ls", "-l"), sandbox_id="abc", exit_code=0)
    assert json.loads(json.dumps(event.as_dict())) == {
        "ts": "2026-05-04T03:02:01.000000+00:00",
        "event": "run",
        "backend": "fake",
        "isolation": "container",
        "duration_ms": 7,
        "sandbox_id": "abc",
        "loosened": [],
        "tenant_id": None,
        "session_id": None,
        "code_sha256": None,
        "argv": ["ls", "-l"],
        "exit_code": 0,
        "bytes_in": 0,
        "bytes_out": 0,
        "network_denials": None,
        "code": None,
        "error_code": None,
    }


def test_a_time_of_another_zone_is_written_in_utc() -> None:
    ts = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    event = AuditEvent(ts=ts, event="run", backend="b", isolation="unknown", duration_ms=0)
    assert event.as_dict()["ts"] == "2026-01-01T00:00:00.000000+00:00"


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        make_event().event = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "values",
    [
        {"on_sink_failure": "ignore"},
        {"on_sink_failure": []},
        {"sinks": NoopSink()},
        {"sinks": 5},
        {"sinks": ("NoopSink",)},
        {"sinks": (NoopSink,)},
    ],
)
def test_a_configuration_that_means_nothing_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        AuditConfig(**values)


def test_a_list_of_sinks_becomes_a_tuple() -> None:
    assert isinstance(AuditConfig(sinks=[NoopSink()]).sinks, tuple)


async def test_every_sink_gets_the_event_in_order() -> None:
    first, second = QueueSink(), QueueSink()
    event = make_event()
    await deliver(AuditConfig(sinks=(first, NoopSink(), second)), event)
    assert first.drain() == second.drain() == (event,)


async def test_a_failing_sink_warns_and_keeps_the_event_from_nobody() -> None:
    after = QueueSink()
    with pytest.warns(AuditSinkWarning, match="BrokenSink failed: OSError: no space left"):
        await deliver(AuditConfig(sinks=(BrokenSink(), after)), make_event())
    assert len(after.drain()) == 1


async def test_a_failing_sink_fails_the_operation_where_that_is_wanted() -> None:
    after = QueueSink()
    config = AuditConfig(sinks=(BrokenSink(), after), on_sink_failure="fail")
    with pytest.raises(AuditSinkError, match="BrokenSink") as caught:
        await deliver(config, make_event())
    assert isinstance(caught.value.__cause__, OSError)
    assert len(after.drain()) == 1


async def test_every_sink_that_failed_is_told() -> None:
    config = AuditConfig(sinks=(BrokenSink(), OtherBrokenSink()), on_sink_failure="fail")
    with pytest.raises(AuditSinkError, match=r"BrokenSink failed: OSError.*; .*OtherBrokenSink") as caught:
        await deliver(config, make_event())
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert [type(exc) for exc in caught.value.__cause__.exceptions] == [OSError, ValueError]


async def test_a_slow_sink_is_given_up_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBX_AUDIT_TIMEOUT", "0.05")
    after = QueueSink()
    with pytest.warns(AuditSinkWarning, match=r"StuckSink did not take an event within 0\.05 s"):
        await deliver(AuditConfig(sinks=(StuckSink(), after)), make_event())
    assert len(after.drain()) == 1


async def test_a_slow_sink_is_given_up_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBX_AUDIT_TIMEOUT", "0.05")
    after = QueueSink()
    config = AuditConfig(sinks=(StuckSink(), after), on_sink_failure="fail")
    with pytest.raises(AuditSinkError, match=r"StuckSink did not take an event within 0\.05 s"):
        await deliver(config, make_event())
    assert len(after.drain()) == 1


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
async def test_a_bad_timeout_takes_nothing_from_the_sinks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBX_AUDIT_TIMEOUT", text)
    sink = QueueSink()
    await deliver(AuditConfig(sinks=(sink,)), make_event())
    assert len(sink.drain()) == 1


async def test_a_warning_that_is_an_error_replaces_no_exception_in_flight() -> None:
    after = QueueSink()
    with warnings.catch_warnings(), pytest.raises(KeyError, match="the caller's") as caught:
        warnings.simplefilter("error")
        try:
            raise KeyError("the caller's")
        finally:
            await deliver(AuditConfig(sinks=(BrokenSink(), after)), make_event())
    assert len(after.drain()) == 1
    assert "BrokenSink failed" in caught.value.__notes__[0]


async def test_a_full_queue_keeps_the_event_from_nobody_where_warnings_are_errors() -> None:
    full, after = QueueSink(maxsize=1), QueueSink()
    config = AuditConfig(sinks=(full, after))
    await deliver(config, make_event("1"))
    with warnings.catch_warnings(), pytest.raises(AuditSinkWarning, match="drops the oldest"):
        warnings.simplefilter("error")
        await deliver(config, make_event("2"))
    assert [event.event for event in full.drain()] == ["2"]
    assert [event.event for event in after.drain()] == ["1", "2"]


async def test_a_cancellation_is_not_taken_for_a_failure() -> None:
    with anyio.move_on_after(0.02) as scope:
        await deliver(AuditConfig(sinks=(StuckSink(),), on_sink_failure="fail"), make_event())
    assert scope.cancelled_caught


async def test_the_logging_sink_writes_one_record(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="sandboxio.audit"):
        await LoggingSink().emit(make_event())
    (record,) = caplog.records
    assert record.name == "sandboxio.audit"
    assert json.loads(record.getMessage()) == make_event().as_dict()
    assert vars(record)["audit_event"]["event"] == "run"


async def test_the_logging_sink_takes_a_logger_and_a_level(caplog: pytest.LogCaptureFixture) -> None:
    sink: AuditSink = LoggingSink(logging.getLogger("host.audit"), level=logging.WARNING)
    await sink.emit(make_event())
    assert [(record.name, record.levelname) for record in caplog.records] == [("host.audit", "WARNING")]


def test_a_file_sink_opens_nothing_before_its_first_event(tmp_path: Path) -> None:
    FileSink(tmp_path / "audit.jsonl")
    assert list(tmp_path.iterdir()) == []


async def test_a_file_sink_appends_a_line_for_each_event(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"kept": true}\n')
    sink = FileSink(path)
    for name in ("create", "run"):
        await sink.emit(make_event(name))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("event") for line in lines] == [None, "create", "run"]


async def test_a_file_sink_makes_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    mask = os.umask(0)
    try:
        await FileSink(path).emit(make_event())
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_file_sink_follows_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    sink = FileSink(path)
    await sink.emit(make_event("create"))
    path.rename(tmp_path / "audit.jsonl.1")
    await sink.emit(make_event("run"))
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["run"]


async def test_events_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    sink = FileSink(path)
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(sink.emit, make_event(str(number), argv=("x" * 5000,)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(int(line["event"]) for line in lines) == list(range(50))


async def test_a_line_that_was_cut_off_does_not_swallow_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    sink = FileSink(path)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
        with pytest.raises(OSError, match="only 10 of"):
            await sink.emit(make_event("lost"))
    await sink.emit(make_event("kept"))
    assert json.loads(path.read_text().splitlines()[1])["event"] == "kept"


async def test_a_disk_that_hangs_delays_only_for_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "audit.fifo"  # opening it for writing hangs until somebody reads
    os.mkfifo(fifo)
    monkeypatch.setenv("SBX_AUDIT_TIMEOUT", "0.1")
    with pytest.warns(AuditSinkWarning, match="FileSink did not take an event"), anyio.fail_after(5):
        await deliver(AuditConfig(sinks=(FileSink(fifo),)), make_event())
    os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))  # let the thread go


async def test_a_disk_that_hangs_holds_one_thread_however_many_events_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink(tmp_path / "audit.jsonl")
    opening, disk = [], threading.Event()
    real_open = os.open

    def hanging_open(*args: Any) -> int:
        opening.append(threading.get_ident())
        disk.wait(10)
        return real_open(*args)

    monkeypatch.setattr(os, "open", hanging_open)
    monkeypatch.setenv("SBX_AUDIT_TIMEOUT", "0.05")
    try:
        for number in range(5):
            with pytest.warns(AuditSinkWarning, match="FileSink did not take an event"):
                await deliver(AuditConfig(sinks=(sink,)), make_event(str(number)))
        assert len(opening) == 1
    finally:
        disk.set()
    await sink.emit(make_event("after"))
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["0", "after"]


def test_loops_in_several_threads_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    sink = FileSink(path)

    async def emit() -> None:
        for number in range(20):
            await sink.emit(make_event(str(number), argv=("x" * 5000,)))

    threads = [threading.Thread(target=anyio.run, args=(emit,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 60


async def test_a_file_in_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await FileSink(tmp_path / "missing" / "audit.jsonl").emit(make_event())


async def test_a_queue_drops_the_oldest_and_says_so_once() -> None:
    sink = QueueSink(maxsize=2)
    await sink.emit(make_event("1"))
    await sink.emit(make_event("2"))
    with pytest.warns(AuditSinkWarning, match="QueueSink of 2 events is full"):
        await sink.emit(make_event("3"))
    await sink.emit(make_event("4"))  # a second warning would be an error here
    assert [event.event for event in sink.drain()] == ["3", "4"]
    assert sink.dropped == 2
    assert sink.drain() == ()


@pytest.mark.parametrize("maxsize", [0, -1, "a", None, 1.5, True, 10**400])
def test_a_size_that_is_no_number_of_events_is_refused(maxsize: Any) -> None:
    with pytest.raises(ConfigurationError, match="maxsize"):
        QueueSink(maxsize)
