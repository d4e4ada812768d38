"""From a request to a container that runs, and from an id to one that does."""

from __future__ import annotations

import os
import time
from typing import Final
from weakref import WeakValueDictionary

import anyio

from sandboxio.adapter.lifetime import Lifetime
from sandboxio.adapter.provision import CreateRequest, Launched
from sandboxio.adapter.threads import BlockingCalls
from sandboxio.audit import AuditConfig
from sandboxio.errors import ConfigurationError, ConnectError, CreationError, SandboxError
from sandboxio.models import Capability
from sandboxio_docker.address import Address, resolve_address
from sandboxio_docker.budget import plan_budget
from sandboxio_docker.config import DockerConfig
from sandboxio_docker.container import SHELL, Container
from sandboxio_docker.driver import ALL_CAPABILITIES, DockerDriver
from sandboxio_docker.engine import Engine
from sandboxio_docker.errors import EngineError, EngineUnreachable, UnexpectedAnswer, translate
from sandboxio_docker.hardening import Plan, container_body
from sandboxio_docker.image import Image, chosen_image, find_image
from sandboxio_docker.labels import LABEL_PROCESS
from sandboxio_docker.managed import describe, remove_created
from sandboxio_docker.oom import OomWatch
from sandboxio_docker.ownership import container_name
from sandboxio_docker.reaper import reaper, reaper_enabled
from sandboxio_docker.runtime import EngineFacts, read_facts
from sandboxio_docker.transport import Transport
from sandboxio_docker.user import User, resolve_user

__all__ = ["DockerProvisioner"]

_THREADS_VARIABLE: Final = "SBX_DOCKER_THREADS"
_DEFAULT_THREADS: Final = 64
_FACTS_SECONDS: Final = 60.0
_NO_SHELL: Final = ("no such file or directory", "executable file not found", "permission denied")


class DockerProvisioner:
    """The provisioning half of the backend; see `sandboxio.adapter.provision.Provisioner`.

    Args:
        config: The configuration.
    """

    def __init__(self, config: DockerConfig) -> None:
        self.config = config
        self.threads = BlockingCalls("docker", _thread_count())
        self._engine: Engine | None = None
        self._facts: tuple[float, EngineFacts] | None = None
        self._unanswered: set[str] = set()
        self._users: dict[tuple[str, str], User] = {}
        self._without_shell: set[str] = set()
        self._watches: WeakValueDictionary[str, OomWatch] = WeakValueDictionary()

    @property
    def name(self) -> str:
        """`docker`."""
        return DockerConfig.backend_name

    @property
    def capabilities(self) -> Capability:
        """What a sandbox usually can do."""
        return ALL_CAPABILITIES

    @property
    def audit(self) -> AuditConfig:
        """Where records of operations go."""
        return self.config.audit

    @property
    def create_timeout(self) -> float:
        """Seconds that creating and starting may take; pulling an image is not counted."""
        return self.config.create_timeout

    @property
    def known_facts(self) -> EngineFacts | None:
        """What the engine said about itself, if it was asked already."""
        return self._facts[1] if self._facts else None

    async def engine(self) -> Engine:
        """The engine, found once.

        Raises:
            ConfigurationError: Its address is malformed.
        """
        if self._engine is None:
            self._engine = Engine(Transport(await self.threads.run(self._resolve)))
        return self._engine

    async def facts(self) -> EngineFacts:
        """What the engine says about itself, asked again after a minute."""
        if self._facts is None or time.monotonic() - self._facts[0] > _FACTS_SECONDS:
            self._facts = (time.monotonic(), await read_facts(await self.engine()))
        return self._facts[1]

    async def prepare(self, request: CreateRequest) -> Plan:
        """Find the engine, the image and its user. Pulling an image is part of this."""
        name = chosen_image(request.template, self.config.template)
        engine = await self.engine()
        facts = await self.facts()
        facts.require_caps()
        runtime, _ = facts.runtime_tier(self.config.runtime)
        image = await find_image(engine, self.threads, name)
        budget = plan_budget(request.resources, len(image.volumes))
        key = (image.id, image.user)
        if key not in self._users:
            self._users[key] = await self._resolve_user(engine, request, image)
        return Plan(
            image=image.id,
            template=name,
            user=self._users[key],
            uid_offset=facts.uid_offset,
            runtime=runtime,
            budget=budget,
            volumes=image.volumes,
            process=reaper().process_id,
        )

    async def launch(self, request: CreateRequest, prepared: Plan) -> Launched:
        """Arm the reaper, create, start."""
        engine = await self.engine()
        await self._arm_reaper(engine, request)
        tier = (await self.facts()).runtime_tier(prepared.runtime)[1]
        shell = prepared.image not in self._without_shell
        try:
            try:
                container, oom = await self._start(engine, request, prepared, shell=shell)
            except EngineError as exc:
                if not shell or not _lacks_shell(exc):
                    raise
                self._without_shell.add(prepared.image)
                shell = False
                await remove_created(engine, request.creation_id)
                container, oom = await self._start(engine, request, prepared, shell=False)
        except UnexpectedAnswer:
            raise
        except EngineError as exc:
            raise _refused(exc, prepared) from exc
        driver = DockerDriver(
            container,
            oom,
            self.threads,
            creation_id=request.creation_id,
            template=prepared.template,
            limits=prepared.budget.limits,
            pids_limit=self.config.pids_limit,
            user=prepared.user,
            env=request.env,
            has_shell=shell,
            tier=tier,
        )
        return Launched(
            id=container.id,
            driver=driver,
            capabilities=driver.capabilities,
            isolation=tier,
            lifetime=Lifetime(request.timeout),
            metadata=request.metadata,
            loosened=self.config.loosened,
        )

    async def discard(self, request: CreateRequest) -> None:
        """Remove whatever carries the creation id."""
        if self._engine is None:
            return
        watch = self._watches.pop(request.creation_id, None)
        if watch is not None:
            watch.close()
        found = await remove_created(self._engine, request.creation_id)
        if not found and request.creation_id in self._unanswered:  # the reaper goes on looking for it
            raise ConnectError("the engine may yet carry out a create request that it did not answer")
        self._unanswered.discard(request.creation_id)
        await self.threads.run(reaper().drop, request.creation_id)

    async def find(self, sandbox_id: str) -> Launched:
        """A running container of ours.

        Raises:
            SandboxGone: There is none of this id, or it has ended.
        ConnectError: sandboxio did not make it.
        """
        engine = await self.engine()
        facts = await read_facts(engine)  # not a remembered one, since the engine's clock is in it
        found = await describe(engine, sandbox_id, facts.now)
        tier = facts.runtime_tier(found.runtime)[1]
        container = Container(engine, found.id)
        oom = OomWatch(container, has_shell=found.has_shell)
        await oom.subscribe()
        await oom.read_kernel_count()
        driver = DockerDriver(
            container,
            oom,
            self.threads,
            creation_id=found.creation_id,
            template=found.template,
            limits=found.limits,
            pids_limit=found.pids_limit,
            user=found.user,
            env=found.env,
            has_shell=found.has_shell,
            tier=tier,
        )
        return Launched(
            id=found.id,
            driver=driver,
            capabilities=driver.capabilities,
            isolation=tier,
            lifetime=Lifetime(found.remaining, timeout=found.lifetime),
            metadata=found.metadata,
            loosened=found.loosened,
        )

    def translate(self, exc: Exception) -> SandboxError | None:
        """See `sandboxio_docker.errors.translate`."""
        return translate(exc)

    async def _arm_reaper(self, engine: Engine, request: CreateRequest) -> None:
        if reaper_enabled():
            await self.threads.run(reaper().hold, request.creation_id, engine.transport.address)

    async def _resolve_user(self, engine: Engine, request: CreateRequest, image: Image) -> User:
        """Looking into an image takes a container, which must not outlive a killed process either."""
        await self._arm_reaper(engine, request)
        try:
            return await resolve_user(
                engine,
                request,
                image.id,
                image.user,
                self.config.user,
                {LABEL_PROCESS: reaper().process_id},
            )
        finally:
            with anyio.CancelScope(shield=True):
                await self.threads.run(reaper().drop, request.creation_id)

    async def _start(
        self, engine: Engine, request: CreateRequest, plan: Plan, *, shell: bool
    ) -> tuple[Container, OomWatch]:
        body = container_body(request, self.config, plan, shell=shell)
        query = {"name": container_name(request.creation_id)}
        self._unanswered.add(request.creation_id)
        try:
            reply = await engine.request("POST", "/containers/create", query=query, body=body)
        except (EngineError, EngineUnreachable):  # it was answered, or never sent
            self._unanswered.discard(request.creation_id)
            raise
        self._unanswered.discard(request.creation_id)
        created = reply.json()
        container = Container(engine, str(created["Id"]))
        oom = self._watches[request.creation_id] = OomWatch(container, has_shell=shell)
        try:
            await oom.subscribe()
            await engine.request("POST", f"/containers/{container.id}/start", timeout=self.create_timeout)
        except BaseException:
            oom.close()
            raise
        return container, oom

    def _resolve(self) -> Address:
        return resolve_address(base_url=self.config.base_url, context=self.config.context)


def _thread_count() -> int:
    text = os.environ.get(_THREADS_VARIABLE, str(_DEFAULT_THREADS))
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise ConfigurationError(
            f"{_THREADS_VARIABLE} is no number of threads",
            hint=f"set it to a number such as {_DEFAULT_THREADS}",
        )
    return int(text)


def _lacks_shell(exc: EngineError) -> bool:
    text = exc.message.lower()
    return f'"{SHELL}"' in text and any(words in text for words in _NO_SHELL)


def _refused(exc: EngineError, plan: Plan) -> CreationError:
    text = exc.message.lower()
    if "no space left on device" in text and plan.volumes:
        return CreationError(
            f"the image {plan.template} brings more in its volumes than {plan.budget.small_bytes} bytes",
            hint="raise Resources(disk_mb=…), or use an image whose volumes are empty",
        )
    if '"sleep"' in text:
        return CreationError(
            f"the image {plan.template} has neither {SHELL} nor sleep, so nothing can hold it open",
            hint="use an image with at least a sleep program",
        )
    return CreationError(f"the Docker engine refused to create the container: {exc.message}")
