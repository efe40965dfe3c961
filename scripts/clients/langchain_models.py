"""LangChain's chat models: ChatAnthropic and ChatOpenAI, with bound tools: invoke, stream, batch."""

import os
from importlib.metadata import version

from client import BASE_URL, KEY, MAX_TOKENS, MODEL, SYSTEM, done, run_tool, turns
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

if os.environ["CLIENT"] == "langchain-anthropic":
    from langchain_anthropic import ChatAnthropic

    package = "langchain-anthropic"
    model = ChatAnthropic(model=MODEL, base_url=BASE_URL, api_key=KEY, max_tokens=MAX_TOKENS, max_retries=0)
else:
    from langchain_openai import ChatOpenAI

    package = "langchain-openai"
    model = ChatOpenAI(
        model=MODEL, base_url=BASE_URL, api_key=KEY, max_completion_tokens=MAX_TOKENS, max_retries=0, stream_usage=True
    )


@tool
def read_file(path: str) -> str:
    """Read a file of the repository."""
    return run_tool("read_file", {"path": path})


@tool
def search(query: str, where: str) -> str:
    """Search the repository for words."""
    return run_tool("search", {"query": query, "where": where})


runnable = {"read_file": read_file, "search": search}
bound = model.bind_tools(list(runnable.values()))
history: list = [SystemMessage(SYSTEM)]
input_tokens: list[int] = []


def streamed(messages):
    whole = None
    for chunk in bound.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


def answered(ask, messages) -> str:
    while True:
        message = ask(messages)
        messages.append(message)
        if message.usage_metadata:
            input_tokens.append(message.usage_metadata["input_tokens"])
        if not message.tool_calls:
            return message.text if isinstance(message.text, str) else message.text()
        for call in message.tool_calls:
            messages.append(ToolMessage(runnable[call["name"]].invoke(call["args"]), tool_call_id=call["id"]))


def batched(messages) -> str:
    """Two questions behind the same history at the same time; the conversation goes on with the first."""
    other = messages[:-1] + [HumanMessage(messages[-1].text + " (another)")]
    first = [bound.batch([messages, other])[0]]
    return answered(lambda now: first.pop() if first else bound.invoke(now), messages)


HOWS = {
    "plain": lambda messages: answered(bound.invoke, messages),
    "stream": lambda messages: answered(streamed, messages),
    "batch": batched,
}

answer = ""
for turn in turns():
    history.append(HumanMessage(turn["text"]))
    answer = HOWS[turn["how"]](history)
done(answer, largest_input=max(input_tokens), version=version(package))
