"""The local server as raw HTTP sees it: strict, and like the service on the wire."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import e2b_server
import httpx
import pytest
from e2b_code_interpreter import AsyncSandbox
from e2b_server.server import E2BServer
from stand_in_machine import Boots

CREATE = {"templateID": "base", "timeout": 60}
STREAM = {"content-type": "application/connect+json"}


def envelope(message: object, flags: int = 0) -> bytes:
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def envelopes(body: bytes) -> list[tuple[int, Any]]:
    found = []
    while body:
        flags, size = struct.unpack_from(">BI", body)
        found.append((flags, json.loads(body[5 : 5 + size])))
        body = body[5 + size :]
    return found


def start(command: str, **more: object) -> bytes:
    return envelope({"process": {"cmd": "/bin/bash", "args": ["-c", command], **more}, "stdin": False})


class TestControlPlane:
    async def test_a_wrong_key_is_unauthorized_and_counted(
        self, server: E2BServer, api: httpx.AsyncClient
    ) -> None:
        before = server.requests["create"]
        reply = await api.post("/v2/sandboxes", json=CREATE, headers={"x-api-key": "e2b_wrong"})
        assert reply.status_code == reply.json()["code"] == 401
        assert server.requests["create"] == before + 1

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ({"surprise": 1}, "unknown field 'surprise'"),
            ({"templateID": 7}, "expected string, got number"),
            ({"timeout": "60"}, "expected an integer"),
            ({"timeout": True}, "expected an integer"),
            ({"timeout": 3601}, "cannot be greater than 3600"),
            ({"metadata": {"a": 1}}, "expected string"),
            ({"envVars": []}, "expected object"),
            ({"autoPause": True}, "cannot be paused"),
            ({"volumeMounts": []}, "not available"),
            ({"network": {"allow_out": []}}, "unknown field 'allow_out'"),
            ({"network": {"allowOut": ["example.com"]}}, "ALL_TRAFFIC"),
            ({"network": {"denyOut": ["example.com"]}}, "cannot be denied"),
            ({"network": {"denyOut": ["10.0.0.0/8"]}}, "0.0.0.0/0 only"),
            ({"network": {"allowOut": ["a b"], "denyOut": ["0.0.0.0/0"]}}, "invalid allow out"),
        ],
    )
    async def test_a_wrong_body_makes_nothing(
        self, api: httpx.AsyncClient, boots: Boots, change: Mapping[str, Any], complaint: str
    ) -> None:
        made = len(boots.machines)
        reply = await api.post("/v2/sandboxes", json={**CREATE, **change})
        assert reply.status_code == reply.json()["code"] == 400
        assert complaint in reply.json()["message"]
        assert len(boots.machines) == made

    async def test_what_is_not_json_is_refused(self, api: httpx.AsyncClient) -> None:
        assert (await api.post("/v2/sandboxes", content=b"{")).status_code == 400
        assert (await api.post("/v2/sandboxes", json={"timeout": 1})).status_code == 400

    async def test_an_unknown_template_is_not_found(self, api: httpx.AsyncClient) -> None:
        assert (await api.post("/v2/sandboxes", json={"templateID": "nope"})).status_code == 404

    async def test_a_key_belongs_to_its_request(self, api: httpx.AsyncClient) -> None:
        key = {"idempotency-key": "mine-1"}
        first = await api.post("/v2/sandboxes", json=CREATE, headers=key)
        other = await api.post("/v2/sandboxes", json={**CREATE, "timeout": 61}, headers=key)
        assert (first.status_code, other.status_code) == (201, 422)
        bad = await api.post("/v2/sandboxes", json=CREATE, headers={"idempotency-key": "No Key"})
        assert bad.status_code == 400
        await api.delete(f"/sandboxes/{first.json()['sandboxID']}")

    async def test_a_boot_that_fails_leaves_nothing_and_frees_the_key(
        self, server: E2BServer, api: httpx.AsyncClient, boots: Boots, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = {"idempotency-key": "again-1"}
        monkeypatch.setattr(boots, "fails", True)
        assert (await api.post("/v2/sandboxes", json=CREATE, headers=key)).status_code == 500
        assert server.leftovers() == []
        monkeypatch.undo()
        retried = await api.post("/v2/sandboxes", json=CREATE, headers=key)
        assert retried.status_code == 201
        await api.delete(f"/sandboxes/{retried.json()['sandboxID']}")

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/sandboxes/none", 404),
            ("DELETE", "/sandboxes/none", 404),
            ("POST", "/sandboxes/none/pause", 404),
            ("GET", "/v1/anything", 404),
            ("PATCH", "/v2/sandboxes", 405),
            ("HEAD", "/v2/sandboxes", 405),
            ("GET", "/v2/sandboxes?limit=101", 400),
            ("GET", "/v2/sandboxes?state=asleep", 400),
            ("GET", "/v2/sandboxes?color=blue", 400),
            ("GET", "/v2/sandboxes?startedAfter=yesterday", 400),
        ],
    )
    async def test_errors_have_their_status(
        self, api: httpx.AsyncClient, method: str, path: str, status: int
    ) -> None:
        assert (await api.request(method, path)).status_code == status

    async def test_a_machine_that_cannot_be_shut_down_stays_in_sight(
        self, server: E2BServer, api: httpx.AsyncClient, made: dict[str, Any], boots: Boots
    ) -> None:
        boots.last.shutdown_fails = True
        assert (await api.delete(f"/sandboxes/{made['sandboxID']}")).status_code == 500
        (stuck,) = server.leftovers()
        assert (stuck.id, stuck.state) == (made["sandboxID"], "stuck")
        assert (await api.get("/v2/sandboxes")).json() == []
        boots.last.is_down = True


class TestProxy:
    async def test_a_sandbox_that_is_not_there(self, envd: httpx.AsyncClient) -> None:
        reply = await envd.get("/health", headers={"e2b-sandbox-id": "gone"})
        message = "The sandbox was not found"
        assert (reply.status_code, reply.json()) == (
            502,
            {"sandboxId": "gone", "message": message, "code": 502},
        )

    async def test_a_port_that_is_closed(self, envd: httpx.AsyncClient) -> None:
        reply = await envd.get("/", headers={"e2b-sandbox-port": "8080"})
        assert reply.status_code == 502
        assert reply.json()["message"] == "The sandbox is running but port is not open"

    async def test_a_port_is_needed(self, envd: httpx.AsyncClient) -> None:
        assert (await envd.get("/health", headers={"e2b-sandbox-port": ""})).status_code == 400

    @pytest.mark.parametrize("token", ["wrong", None])
    async def test_the_token_is_needed(self, envd: httpx.AsyncClient, token: str | None) -> None:
        del envd.headers["x-access-token"]
        headers = {"x-access-token": token} if token else {}
        assert (await envd.get("/files?path=x", headers=headers)).status_code == 401
        listing = await envd.post("/process.Process/List", json={}, headers=headers)
        assert listing.status_code == 401
        code = {**headers, "e2b-sandbox-port": "49999"}
        assert (await envd.post("/execute", json={"code": ""}, headers=code)).status_code == 401
        assert (await envd.get("/health")).status_code == 204

    async def test_private_traffic_needs_its_own_token(self, api: httpx.AsyncClient) -> None:
        body = {**CREATE, "network": {"allowPublicTraffic": False}}
        made = (await api.post("/v2/sandboxes", json=body)).json()
        headers = {"e2b-sandbox-id": made["sandboxID"], "e2b-sandbox-port": "49999"}
        assert (await api.get("/contexts", headers=headers)).status_code == 403
        headers["e2b-traffic-access-token"] = made["trafficAccessToken"]
        assert (await api.get("/contexts", headers=headers)).status_code == 200
        await api.delete(f"/sandboxes/{made['sandboxID']}")


class TestUnary:
    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/filesystem.Filesystem/Stat", {"path": "x", "extra": 1}),
            ("/filesystem.Filesystem/Stat", {}),
            ("/filesystem.Filesystem/Stat", {"path": ""}),
            ("/filesystem.Filesystem/ListDir", {"path": "x", "depth": -1}),
            ("/process.Process/SendInput", {"process": {"pid": 1}, "input": {"stdin": "%%%"}}),
            ("/process.Process/SendInput", {"process": {"pid": 1}, "input": {}}),
            ("/process.Process/SendSignal", {"process": {"pid": "one"}, "signal": "SIGNAL_SIGKILL"}),
        ],
    )
    async def test_a_wrong_message_is_an_invalid_argument(
        self, envd: httpx.AsyncClient, path: str, body: object
    ) -> None:
        reply = await envd.post(path, json=body)
        assert (reply.status_code, reply.json()["code"]) == (400, "invalid_argument")

    async def test_codes_come_with_their_status(self, envd: httpx.AsyncClient) -> None:
        missing = await envd.post("/filesystem.Filesystem/Stat", json={"path": "none"})
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        await envd.post("/filesystem.Filesystem/MakeDir", json={"path": "d"})
        twice = await envd.post("/filesystem.Filesystem/MakeDir", json={"path": "d"})
        assert (twice.status_code, twice.json()["code"]) == (409, "already_exists")
        signal = {"process": {"pid": 1}, "signal": "SIGNAL_SIGHUP"}
        unknown = await envd.post("/process.Process/SendSignal", json=signal)
        assert (unknown.status_code, unknown.json()["code"]) == (501, "unimplemented")

    async def test_protocol_version_and_content_type_are_needed(self, envd: httpx.AsyncClient) -> None:
        path = "/process.Process/List"
        assert (await envd.post(path, content=b"{}")).status_code == 415
        old = await envd.post(path, json={}, headers={"connect-protocol-version": "2"})
        assert (old.status_code, old.json()["code"]) == (400, "invalid_argument")
        timeout = await envd.post(path, json={}, headers={"connect-timeout-ms": "soon"})
        assert timeout.status_code == 400
        assert (await envd.post(path, json={})).json() == {}

    @pytest.mark.parametrize("name", ["user", "root", ""])
    async def test_there_is_one_user(self, envd: httpx.AsyncClient, name: str) -> None:
        authorization = {"authorization": f"Basic {b64encode(f'{name}:'.encode()).decode()}"}
        reply = await envd.post("/process.Process/List", json={}, headers=authorization)
        assert reply.status_code == (200 if name == "user" else 401)

    async def test_paths_are_exact(self, envd: httpx.AsyncClient) -> None:
        assert (await envd.post("/process.Process/Lists", json={})).status_code == 404
        assert (await envd.post("/process.Process/List/", json={})).status_code == 404
        assert (await envd.get("/process.Process/List")).status_code == 405

    async def test_zero_values_are_left_out(self, envd: httpx.AsyncClient) -> None:
        await envd.post("/files?path=z", content=b"", headers={"content-type": "application/octet-stream"})
        entry = (await envd.post("/filesystem.Filesystem/Stat", json={"path": "z"})).json()["entry"]
        assert "size" not in entry
        await envd.post("/files?path=z", content=b"ab", headers={"content-type": "application/octet-stream"})
        entry = (await envd.post("/filesystem.Filesystem/Stat", json={"path": "z"})).json()["entry"]
        assert (entry["size"], entry["type"]) == ("2", "FILE_TYPE_FILE")
        assert entry["modifiedTime"].endswith("Z")


class TestStreams:
    async def test_a_command_is_told_event_by_event(self, envd: httpx.AsyncClient) -> None:
        reply = await envd.post("/process.Process/Start", content=start("printf hi"), headers=STREAM)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/connect+json")
        (_, started), (_, data), (_, ended), last = envelopes(reply.content)
        assert started["event"]["start"]["pid"] > 0
        assert b64decode(data["event"]["data"]["stdout"]) == b"hi"
        assert ended == {"event": {"end": {"exited": True, "status": "exit status 0"}}}
        assert last == (2, {})

    async def test_a_failure_to_start_is_the_streams_end(self, envd: httpx.AsyncClient) -> None:
        reply = await envd.post("/process.Process/Start", content=start("", cwd="/no"), headers=STREAM)
        ((flags, end),) = envelopes(reply.content)
        assert (reply.status_code, flags, end["error"]["code"]) == (200, 2, "invalid_argument")

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\0\0",
            envelope({"process": {"cmd": "true"}, "color": 1}),
            envelope({"process": {"cmd": "true"}, "pty": {}}),
            envelope({"process": {"cmd": "true"}}, flags=1),
            envelope({"process": {"cmd": "true"}}) * 2,
        ],
    )
    async def test_a_wrong_message_is_an_invalid_argument(
        self, envd: httpx.AsyncClient, content: bytes
    ) -> None:
        reply = await envd.post("/process.Process/Start", content=content, headers=STREAM)
        ((_, end),) = envelopes(reply.content)
        assert end["error"]["code"] == "invalid_argument"

    async def test_the_content_type_is_needed(self, envd: httpx.AsyncClient) -> None:
        reply = await envd.post("/process.Process/Start", json={"process": {"cmd": "true"}})
        assert reply.status_code == 415

    async def test_a_deadline_is_told(self, envd: httpx.AsyncClient) -> None:
        headers = {**STREAM, "connect-timeout-ms": "200"}
        reply = await envd.post("/process.Process/Start", content=start("sleep 60"), headers=headers)
        flags, end = envelopes(reply.content)[-1]
        assert (flags, end["error"]["code"]) == (2, "deadline_exceeded")

    async def test_silence_is_filled(self, envd: httpx.AsyncClient) -> None:
        headers = {**STREAM, "keepalive-ping-interval": "1"}
        reply = await envd.post("/process.Process/Start", content=start("sleep 1.3"), headers=headers)
        assert (0, {"event": {"keepalive": {}}}) in envelopes(reply.content)

    async def test_a_client_that_does_not_read_makes_the_process_wait(
        self, envd: httpx.AsyncClient, boots: Boots
    ) -> None:
        headers = {"content-type": STREAM["content-type"]}
        request = envd.build_request("POST", "/process.Process/Start", content=start("yes"), headers=headers)
        response = await envd.send(request, stream=True)
        (process,) = boots.last.processes.values()
        before = -1
        while before != process.read:
            before = process.read
            await anyio.sleep(0.3)
        assert before < 32 * 1024 * 1024
        await response.aclose()
        await process.signal("SIGNAL_SIGKILL")


class TestFilesOverHttp:
    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ("path=none", 404),
            ("", 400),
            ("path=", 400),
            ("path=a%00b", 400),
            ("path=none&username=user", 404),
            ("path=none&username=root", 401),
            ("path=none&color=blue", 400),
        ],
    )
    async def test_errors_have_status_and_json(
        self, envd: httpx.AsyncClient, query: str, status: int
    ) -> None:
        reply = await envd.get(f"/files?{query}")
        assert reply.status_code == reply.json()["code"] == status

    @pytest.mark.parametrize(
        ("content", "headers"),
        [
            (b"x", {}),
            (b"x", {"content-type": "text/plain"}),
            (b"x", {"content-type": "multipart/form-data"}),
            (b"x", {"content-type": "multipart/form-data; boundary=b"}),
            (
                b'--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\ncut off',
                {"content-type": "multipart/form-data; boundary=b"},
            ),
            (
                b'--b\r\ncontent-disposition: form-data; name="file"\r\n\r\nno name\r\n--b--\r\n',
                {"content-type": "multipart/form-data; boundary=b"},
            ),
            (b"x", {"content-type": "application/octet-stream"}),
        ],
    )
    async def test_a_wrong_upload_is_refused(
        self, envd: httpx.AsyncClient, content: bytes, headers: dict[str, str]
    ) -> None:
        reply = await envd.post("/files", content=content, headers=headers)
        assert reply.status_code == reply.json()["code"] == 400

    async def test_a_refused_upload_is_heard_out(self, envd: httpx.AsyncClient) -> None:
        await envd.post("/filesystem.Filesystem/MakeDir", json={"path": "dir"})
        headers = {"content-type": "application/octet-stream"}
        reply = await envd.post("/files?path=dir", content=bytes(8 * 1024 * 1024), headers=headers)
        assert reply.status_code == 400

    async def test_one_path_is_for_one_file(self, envd: httpx.AsyncClient) -> None:
        files = [("file", ("a", b"1")), ("file", ("b", b"2"))]
        assert (await envd.post("/files?path=same", files=files)).status_code == 400

    async def test_broken_compression_is_refused(self, envd: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/octet-stream", "content-encoding": "gzip"}
        assert (await envd.post("/files?path=x", content=b"not gzip", headers=headers)).status_code == 400


class TestInterpreterOverHttp:
    @pytest.fixture
    def code(self, envd: httpx.AsyncClient) -> httpx.AsyncClient:
        envd.headers["e2b-sandbox-port"] = "49999"
        return envd

    async def test_lines_are_json_with_a_type(self, code: httpx.AsyncClient) -> None:
        body = {"code": "say hi", "context_id": None, "language": None, "env_vars": None}
        reply = await code.post("/execute", json=body)
        kinds = [json.loads(line)["type"] for line in reply.text.splitlines()]
        assert kinds == ["number_of_executions", "stdout", "result", "end_of_execution"]

    async def test_errors_have_their_status(self, code: httpx.AsyncClient) -> None:
        both = await code.post("/execute", json={"code": "", "context_id": "a", "language": "python"})
        assert both.status_code == 400
        unknown = await code.post("/execute", json={"code": "", "context_id": "a"})
        assert (unknown.status_code, unknown.text) == (404, "Context a not found")
        assert (await code.post("/execute", json={"code": "", "color": 1})).status_code == 422
        assert (await code.post("/contexts", json={"language": 1})).status_code == 422
        wrong = await code.get("/contexts", headers={"x-access-token": "wrong"})
        assert wrong.status_code == 401


class TestCommandLine:
    def test_it_serves_until_its_input_ends(self) -> None:
        support = Path(e2b_server.__file__).parents[1]
        with subprocess.Popen(
            [sys.executable, "-m", "e2b_server"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(support), *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as serving:
            assert serving.stdin is not None
            assert serving.stdout is not None
            told = dict(serving.stdout.readline().strip().split("=", 1) for _ in range(3))
            assert set(told) == {"E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL"}
            listing = f"{told['E2B_API_URL']}/v2/sandboxes"
            assert httpx.get(listing, headers={"x-api-key": told["E2B_API_KEY"]}).json() == []
            serving.stdin.close()
            assert serving.wait(20) == 0


class TestClosing:
    def test_closing_shuts_down_and_hangs_up(self, boots: Boots) -> None:
        before = threading.active_count()
        server = E2BServer(boots)
        server.start()
        asyncio.run(self._leave_things_running(server))
        server.close()
        server.close()
        assert boots.last.is_down
        assert threading.active_count() == before
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=2)

    async def _leave_things_running(self, server: E2BServer) -> None:
        sandbox = await AsyncSandbox.create(timeout=60, **server.connection)
        command = await sandbox.commands.run("sleep 60", background=True, timeout=0)
        await command.disconnect()
