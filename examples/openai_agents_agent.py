"""An agent of the OpenAI Agents SDK whose tool runs shell commands in a sandbox.

Needs the extras `docker` and `openai-agents`. Name a model in AGENT_MODEL and give OPENAI_API_KEY.
Without AGENT_MODEL a scripted model stands in: it always asks for the same command, and reports
what the sandbox answered.
"""

import asyncio
import os

from agents import Agent, Model, Runner, ToolCallItem, ToolCallOutputItem, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

import sandboxio
from sandboxio.integrations.openai_agents import make_command_tool

QUESTION = "How many words are these, and which of them have an i: fig, quince, apple?"
COMMAND = "printf 'fig\\nquince\\napple\\n' > words.txt; wc -l < words.txt; grep i words.txt"


def read_out(call: ModelCall) -> ModelStep:
    """What the scripted model says at the end: the answer of its tool, word for word."""
    answer = call.input[-1]["output"]
    return ModelStep(output=[assistant_message(f"the sandbox answered: {' '.join(answer.split())}")])


def chosen_model() -> str | Model:
    """The model of the environment, or the scripted one, which calls nobody and so traces nowhere."""
    name = os.environ.get("AGENT_MODEL")
    if name:
        return name
    print("AGENT_MODEL is not set, so a scripted model stands in")
    set_tracing_disabled(True)
    asking = [function_call("run_command", {"command": COMMAND}, call_id="1")]
    return ScriptedModel([asking, ModelStep.respond(read_out)])


async def main() -> None:
    """Give the agent one sandbox for its whole run; leaving the block ends it."""
    async with sandboxio.create(timeout=120) as sandbox:
        tool = make_command_tool(sandbox, timeout=20)
        agent = Agent(name="analyst", tools=[tool], model=chosen_model())
        result = await Runner.run(agent, QUESTION)
    for item in result.new_items:
        if isinstance(item, ToolCallItem):
            print("the model calls its tool")
        elif isinstance(item, ToolCallOutputItem):
            print("the tool answers:", " ".join(item.output.split()))
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
