"""The control plane: making, finding and ending sandboxes."""

from __future__ import annotations

import asyncio
import operator
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .network_rules import egress_from
from .ports import MachineError
from .schema import boolean, mapping, nothing, optional, read, record, text, texts, whole
from .state import Cloud, Order, Sandbox

__all__ = ["ControlPlane", "Refused", "error_reply"]

ENVD_VERSION = "0.6.13"
CPU_COUNT, MEMORY_MB, DISK_MB = 2, 1024, 512

_DAY = 24 * 3600
_EGRESS = {
    "allowOut": texts,
    "denyOut": texts,
    "dnsServers": texts,
    "egressProxy": nothing,
    "rules": nothing,
}
_NETWORK = record(
    optional={
        **_EGRESS,
        "allowPublicTraffic": optional(boolean),
        "maskRequestHost": nothing,
        "httpsPorts": nothing,
    }
)
_NETWORK_UPDATE = record(optional={**_EGRESS, "allow_internet_access": boolean})
_CREATE = record(
    required={"templateID": text},
    optional={
        "timeout": whole(0, _DAY),
        "autoPause": boolean,
        "autoPauseMemory": boolean,
        "autoResume": record(required={"enabled": boolean}),
        "allow_internet_access": boolean,
        "network": _NETWORK,
        "metadata": mapping,
        "envVars": mapping,
        "mcp": nothing,
        "iam": nothing,
        "volumeMounts": nothing,
    },
)
_CONNECT = record(optional={"timeout": whole(0, _DAY), "memory": boolean})
_TIMEOUT = record(required={"timeout": whole(0, _DAY)})
_PAUSE = record(optional={"memory": boolean, "requireHealthyGuest": boolean})
_LIST_QUERY = frozenset({"metadata", "state", "order", "startedAfter", "template", "nextToken", "limit"})
_KEY = re.compile(r"[a-z0-9-]{1,255}")


class Refused(Exception):
    """A request that the control plane answers with an error."""

    def __init__(self, status: int, message: str, error_code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_code = error_code


def error_reply(status: int, message: str, error_code: str | None = None) -> Response:
    """The service's JSON for an error."""
    body: dict[str, Any] = {"code": status, "message": message}
    if error_code is not None:
        body["error_code"] = error_code
    return JSONResponse(body, status)


class ControlPlane:
    """The endpoints under the API's address."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._by_key: dict[str, tuple[bytes, asyncio.Task[Sandbox]]] = {}
        one = "/sandboxes/{id}"
        self.routes = [
            Route("/v2/sandboxes", self.create, methods=["POST"], name="create"),
            Route("/v2/sandboxes", self.list, methods=["GET"], name="list"),
            Route("/v2/sandboxes/{id}/connect", self.connect, methods=["POST"], name="connect"),
            Route(one, self.info, methods=["GET"], name="info"),
            Route(one, self.kill, methods=["DELETE"], name="kill"),
            Route(f"{one}/timeout", self.timeout, methods=["POST"], name="timeout"),
            Route(f"{one}/network", self.network, methods=["PUT"], name="network"),
            Route(f"{one}/pause", self.pause, methods=["POST"], name="pause"),
            Route(f"{one}/metrics", self.metrics, methods=["GET"], name="metrics"),
        ]

    async def create(self, request: Request) -> Response:
        """Make a sandbox, or find the one that the same idempotency key made before."""
        raw = await request.body()
        order = self._order(read(raw, _CREATE))
        key = request.headers.get("idempotency-key")
        if key is None:
            birth = self._cloud.create(order)
        elif not _KEY.fullmatch(key):
            raise Refused(400, "invalid Idempotency-Key header")
        else:
            birth = self._once(key, raw, order)
        try:
            sandbox = await asyncio.shield(birth)
        except MachineError as error:
            raise _refused(error) from error
        except Exception as error:
            raise Refused(500, f"failed to place sandbox: {error}", "sandbox_create_failed") from error
        return JSONResponse(_created(sandbox), 201)

    def _once(self, key: str, raw: bytes, order: Order) -> asyncio.Task[Sandbox]:
        if key not in self._by_key:
            birth = self._cloud.create(order)
            self._by_key[key] = raw, birth
            # A failure made nothing, so the next attempt with this key may try again.
            birth.add_done_callback(lambda done: self._by_key.pop(key) if done.exception() else None)
        earlier, birth = self._by_key[key]
        if earlier != raw:
            raise Refused(422, "the key was used with another request", "idempotency_request_mismatch")
        return birth

    def _order(self, body: dict[str, Any]) -> Order:
        template = body["templateID"]
        if template not in self._cloud.templates:
            raise Refused(404, f"template '{template}' not found")
        lifetime = body.get("timeout", 300)
        if lifetime > self._cloud.longest_lifetime:
            raise Refused(400, f"timeout cannot be greater than {self._cloud.longest_lifetime} seconds")
        if body.get("autoPause") or body.get("autoResume", {}).get("enabled"):
            raise Refused(400, "sandboxes cannot be paused on this server")
        network, internet = body.get("network", {}), body.get("allow_internet_access")
        return Order(
            template=template,
            lifetime=lifetime,
            metadata=body.get("metadata", {}),
            envs=body.get("envVars", {}),
            network=network,
            allow_internet_access=internet,
            egress=egress_from(
                allow_internet_access=internet,
                allow_out=network.get("allowOut", ()),
                deny_out=network.get("denyOut", ()),
                dns_servers=network.get("dnsServers"),
            ),
        )

    async def connect(self, request: Request) -> Response:
        """Hand out a running sandbox, prolonging its lifetime if what is asked for is longer."""
        sandbox = self._sandbox(request)
        seconds = read(await request.body(), _CONNECT).get("timeout", 300)
        if seconds > (sandbox.ends_at - datetime.now(UTC)).total_seconds():
            self._cloud.live_for(sandbox, seconds)
        return JSONResponse(_created(sandbox), 200)

    async def info(self, request: Request) -> Response:
        """All that is known of a sandbox."""
        sandbox = self._sandbox(request)
        return JSONResponse(
            {
                **_listed(sandbox),
                "envdAccessToken": sandbox.envd_token,
                "allowInternetAccess": sandbox.allow_internet_access,
                "network": dict(sandbox.network),
                "lifecycle": {"autoResume": False, "onTimeout": "kill"},
            }
        )

    async def kill(self, request: Request) -> Response:
        """End a sandbox; the answer comes when its machine is gone."""
        sandbox = self._sandbox(request)
        await asyncio.shield(self._cloud.begin_end(sandbox))
        if sandbox.state == "stuck":
            raise Refused(500, "error killing sandbox")
        return Response(status_code=204)

    async def timeout(self, request: Request) -> Response:
        """Let the lifetime end so many seconds from now."""
        sandbox = self._sandbox(request)
        seconds = read(await request.body(), _TIMEOUT)["timeout"]
        if seconds > self._cloud.longest_lifetime:
            raise Refused(400, f"timeout cannot be greater than {self._cloud.longest_lifetime} seconds")
        self._cloud.live_for(sandbox, seconds)
        return Response(status_code=204)

    async def network(self, request: Request) -> Response:
        """Replace all egress rules; a rule that is left out is gone."""
        sandbox = self._sandbox(request)
        rules = read(await request.body(), _NETWORK_UPDATE)
        internet = rules.pop("allow_internet_access", None)
        egress = egress_from(
            allow_internet_access=internet,
            allow_out=rules.get("allowOut", ()),
            deny_out=rules.get("denyOut", ()),
            dns_servers=rules.get("dnsServers"),
        )
        try:
            await sandbox.machine.set_egress(egress)
        except MachineError as error:
            raise _refused(error) from error
        ingress = {key: value for key, value in sandbox.network.items() if key == "allowPublicTraffic"}
        sandbox.network = {**ingress, **rules}
        sandbox.allow_internet_access = internet
        sandbox.egress = egress
        return Response(status_code=204)

    async def pause(self, request: Request) -> Response:
        """Refused: nothing here can freeze a machine."""
        self._sandbox(request)
        read(await request.body(), _PAUSE)
        raise Refused(400, "sandboxes cannot be paused on this server")

    async def metrics(self, request: Request) -> Response:
        """The samples taken so far; none are taken here."""
        self._sandbox(request)
        return JSONResponse([])

    async def list(self, request: Request) -> Response:
        """One page of the running sandboxes, the newest first unless asked otherwise."""
        query = request.query_params
        if unknown := set(query.keys()) - _LIST_QUERY:
            raise Refused(400, f"unknown query parameter {min(unknown)!r}")
        found = _matching([each for each in self._cloud.sandboxes if each.state == "running"], dict(query))
        page = found[: _limit(query.get("limit", "100"))]
        following = _position(page[-1]) if len(page) < len(found) else ""
        return JSONResponse([_listed(each) for each in page], headers={"X-Next-Token": following})

    def _sandbox(self, request: Request) -> Sandbox:
        sandbox_id = request.path_params["id"]
        sandbox = self._cloud.running(sandbox_id)
        if sandbox is None:
            raise Refused(
                404, f"sandbox \"{request.path_params['id']}\" doesn't exist or you don't have access"
            )
        return sandbox


def _refused(error: MachineError) -> Refused:
    return Refused(500 if error.code == "internal" else 400, error.message)


def _matching(sandboxes: list[Sandbox], query: dict[str, str]) -> list[Sandbox]:
    states = query.get("state", "running,paused").split(",")
    if unknown := set(states) - {"running", "paused"}:
        raise Refused(400, f"unknown state {min(unknown)!r}")
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise Refused(400, f"unknown order {order!r}")
    after = _instant(query["startedAfter"]) if "startedAfter" in query else None
    # Keys and values are quoted inside a query that is itself quoted as one parameter.
    wanted = {
        unquote(name): unquote(value)
        for name, value in parse_qsl(query.get("metadata", ""), keep_blank_values=True)
    }
    found = [
        each
        for each in sandboxes
        if "running" in states
        and wanted.items() <= each.metadata.items()
        and query.get("template", each.template) == each.template
        and (after is None or each.started_at > after)
    ]
    found.sort(key=_position, reverse=order == "desc")
    if token := query.get("nextToken"):
        # By position and not by number: a sandbox that ended meanwhile must not hide another.
        beyond = operator.lt if order == "desc" else operator.gt
        found = [each for each in found if beyond(_position(each), token)]
    return found


def _position(sandbox: Sandbox) -> str:
    return f"{sandbox.started_at.timestamp():.6f}_{sandbox.id}"


def _limit(value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= 100:
        raise Refused(400, f"limit {value!r} is not between 1 and 100")
    return int(value)


def _instant(value: str) -> datetime:
    try:
        instant = datetime.fromisoformat(value)
    except ValueError as error:
        raise Refused(400, f"{value!r} is no date and time") from error
    if instant.tzinfo is None:
        raise Refused(400, f"{value!r} has no offset")
    return instant


def _created(sandbox: Sandbox) -> dict[str, Any]:
    return {
        "templateID": sandbox.template,
        "sandboxID": sandbox.id,
        "clientID": "local",
        "envdVersion": ENVD_VERSION,
        "envdAccessToken": sandbox.envd_token,
        "trafficAccessToken": sandbox.traffic_token,
    }


def _listed(sandbox: Sandbox) -> dict[str, Any]:
    return {
        "templateID": sandbox.template,
        "sandboxID": sandbox.id,
        "clientID": "local",
        "envdVersion": ENVD_VERSION,
        "startedAt": sandbox.started_at.isoformat(),
        "endAt": sandbox.ends_at.isoformat(),
        "cpuCount": CPU_COUNT,
        "memoryMB": MEMORY_MB,
        "diskSizeMB": DISK_MB,
        "state": "running",
        "metadata": dict(sandbox.metadata),
    }
