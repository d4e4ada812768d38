"""A LangChain agent, a graph of LangGraph, whose tool runs Python in a sandbox.

Needs the extras `docker` and `langgraph`, and `langchain` for the agent itself. Name a model in
AGENT_MODEL, such as `openai:gpt-5`, with its provider's package and key. Without one a scripted
model stands in: it always asks for the same program, and reports what the sandbox answered.
"""

import asyncio
import os
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import sandboxio
from sandboxio.integrations.langgraph import make_code_tool

QUESTION = "What is the sum of the squares of the numbers from 1 to 100?"
PROGRAM = "total = 0\nfor number in range(1, 101):\n    total += number ** 2\nprint(total)"


class ScriptedModel(BaseChatModel):
    """No language model: it plays one that calls the tool once and then reads out the answer."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Know the tools already."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        if last.type == "tool":
            answer = AIMessage(f"the sandbox answered: {last.text.split()[-1]}")
        else:
            answer = AIMessage("", tool_calls=[{"name": "run_code", "args": {"code": PROGRAM}, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def chosen_model() -> BaseChatModel:
    """The model of the environment, or the scripted one."""
    name = os.environ.get("AGENT_MODEL")
    if name:
        return init_chat_model(name)
    print("AGENT_MODEL is not set, so a scripted model stands in")
    return ScriptedModel()


async def main() -> None:
    """Give the agent one sandbox for its whole run; leaving the block ends it."""
    async with sandboxio.create(timeout=120) as sandbox:
        agent = create_agent(chosen_model(), [make_code_tool(sandbox, timeout=20)])
        state = await agent.ainvoke({"messages": [HumanMessage(QUESTION)]})
    for message in state["messages"]:
        words = message.text or f"calls {message.tool_calls[0]['name']}"
        print(f"{message.type}: {' '.join(words.split())}")


if __name__ == "__main__":
    asyncio.run(main())
