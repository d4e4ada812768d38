"""Real agents of each framework, whose model reads its answers from a script, on the fake and on Docker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

import sandboxio
from sandboxio.protocols import AsyncSandbox, Backend
from sandboxio.testing.fake import FakeBackend

FINAL = "that is all"


class LangGraph:
    """An agent of `langchain.agents`, which is a graph of LangGraph."""

    def __init__(self) -> None:
        from sandboxio.integrations import langgraph

        self.tools = langgraph

    async def answers(self, tool: Any, *calls: Mapping[str, Any]) -> list[str]:
        """Let the model make each call in turn, and return what it was answered."""
        return [message.content for message in await self.messages(tool, *calls) if message.type == "tool"]

    async def messages(self, tool: Any, *calls: Mapping[str, Any]) -> list[Any]:
        from langchain.agents import create_agent
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage

        class ScriptedModel(GenericFakeChatModel):
            def bind_tools(self, tools: Any, **_: Any) -> Any:
                return self

        script = [
            AIMessage("", tool_calls=[{"name": tool.name, "args": call, "id": f"call-{number}"}])
            for number, call in enumerate(calls)
        ]
        agent = create_agent(ScriptedModel(messages=iter([*script, AIMessage(FINAL)])), [tool])
        state = await agent.ainvoke({"messages": [("user", "go on")]})
        assert state["messages"][-1].content == FINAL
        return state["messages"]


class OpenAIAgents:
    """An agent of the OpenAI Agents SDK."""

    def __init__(self) -> None:
        from agents import set_tracing_disabled

        from sandboxio.integrations import openai_agents

        set_tracing_disabled(True)
        self.tools = openai_agents

    async def answers(self, tool: Any, *calls: Mapping[str, Any]) -> list[str]:
        """Let the model make each call in turn, and return what it was answered."""
        from agents import Agent, Runner, ToolCallOutputItem
        from agents.testing import ScriptedModel, assistant_message, function_call

        script = [
            [function_call(tool.name, json.dumps(call), call_id=f"call-{number}")]
            for number, call in enumerate(calls)
        ]
        agent = Agent(
            name="scripted", tools=[tool], model=ScriptedModel([*script, [assistant_message(FINAL)]])
        )
        result = await Runner.run(agent, "go on")
        assert result.final_output == FINAL
        return [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]


class Place:
    """A backend, and what exists there on behalf of this test."""

    def __init__(self, target: str | Backend) -> None:
        self.target = target
        self._label = uuid4().hex

    def create(self, **arguments: Any) -> sandboxio.PendingSandbox:
        """A sandbox with the defaults of `create`, found again by `count`."""
        return sandboxio.create(self.target, metadata={"test": self._label}, **arguments)

    async def count(self) -> int:
        """How many sandboxes of this test exist."""
        backend = sandboxio.backend_for(self.target)
        assert isinstance(backend, sandboxio.ReapableBackend)
        listed = await backend.list_managed()
        return sum(managed.metadata.get("test") == self._label for managed in listed)

    async def followers(self, sandbox: AsyncSandbox) -> int:
        """How many processes with `MARKER=follow` in their environment run in the sandbox."""
        if isinstance(self.target, FakeBackend):
            running = sandbox.native.kernel.processes.values()
            return sum(process.variables.get("MARKER") == "follow" for process in running)
        found = await sandbox.run("grep -ls MARKER=follow /proc/[0-9]*/environ | wc -l")
        return int(found.stdout)


@pytest.fixture
def anyio_backend() -> str:
    """Both frameworks run on asyncio alone."""
    return "asyncio"


@pytest.fixture(params=[LangGraph, OpenAIAgents], ids=["langgraph", "openai-agents"])
def framework(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.fixture(params=["fake", pytest.param("docker", marks=pytest.mark.docker)])
def place(request: pytest.FixtureRequest) -> Place:
    return Place(FakeBackend() if request.param == "fake" else "docker://")
