"""pydantic-ai: an agent with tools over Anthropic Messages and over OpenAI Responses, run and run_stream."""

import asyncio
import os
from importlib.metadata import version

from client import BASE_URL, KEY, MAX_TOKENS, MODEL, SYSTEM, done, run_tool, turns
from pydantic_ai import Agent

if os.environ["CLIENT"] == "pydantic-ai-anthropic":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    model = AnthropicModel(MODEL, provider=AnthropicProvider(api_key=KEY, base_url=BASE_URL))
else:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIResponsesModel(MODEL, provider=OpenAIProvider(api_key=KEY, base_url=BASE_URL))

agent = Agent(model, instructions=SYSTEM, model_settings={"max_tokens": MAX_TOKENS}, retries=3)


@agent.tool_plain
def read_file(path: str) -> str:
    """Read a file of the repository."""
    return run_tool("read_file", {"path": path})


@agent.tool_plain
def search(query: str, where: str) -> str:
    """Search the repository for words."""
    return run_tool("search", {"query": query, "where": where})


async def main() -> None:
    history: list = []
    answer = ""
    for turn in turns():
        if turn["how"] == "plain":
            result = await agent.run(turn["text"], message_history=history)
            answer, history = result.output, result.all_messages()
        else:
            async with agent.run_stream(turn["text"], message_history=history) as result:
                answer = await result.get_output()
                history = result.all_messages()
    done(answer, version=version("pydantic-ai-slim"))


asyncio.run(main())
