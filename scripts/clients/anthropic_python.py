"""Anthropic's Python SDK: plain, streamed, with tools, the tool runner, token counts, requests side by side."""

from concurrent.futures import ThreadPoolExecutor

import anthropic
from anthropic import beta_tool
from client import BASE_URL, KEY, MAX_TOKENS, MODEL, SYSTEM, done, run_tool, turns

client = anthropic.Anthropic(base_url=BASE_URL, api_key=KEY, max_retries=0)
head = {"model": MODEL, "max_tokens": MAX_TOKENS, "system": SYSTEM, "cache_control": {"type": "ephemeral"}}
history: list = []
epochs: list[int] = []
counted: list[tuple[int, int]] = []


@beta_tool
def read_file(path: str) -> str:
    """Read a file of the repository.

    Args:
        path: Path from the root of the repository.
    """
    return run_tool("read_file", {"path": path})


@beta_tool
def search(query: str, where: str) -> str:
    """Search the repository for words.

    Args:
        query: Words to look for.
        where: Folder to look in.
    """
    return run_tool("search", {"query": query, "where": where})


# The same definitions in all requests: thinking is bound to them too.
tools = [read_file.to_dict(), search.to_dict()]


def plain(messages):
    raw = client.messages.with_raw_response.create(**head, tools=tools, messages=messages)
    epochs.append(int(raw.headers.get("x-throughline-epoch", 0)))
    return raw.parse()


def streamed(messages):
    with client.messages.stream(**head, tools=tools, messages=messages) as stream:
        for _ in stream.text_stream:
            pass
        return stream.get_final_message()


def events(messages):
    kinds = [event.type for event in client.messages.create(**head, tools=tools, messages=messages, stream=True)]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
    return streamed(messages)


def answered(ask, messages) -> str:
    """The loop that runs tools, written out; the history has the answer afterwards."""
    while True:
        message = ask(messages)
        messages.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in message.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": run_tool(call.name, call.input)} for call in calls
        ]
        messages.append({"role": "user", "content": results})


def by_the_runner(messages) -> str:
    runner = client.beta.messages.tool_runner(
        **head, tools=[read_file, search], messages=list(messages), max_iterations=20
    )
    text = ""
    for message in runner:
        messages.append({"role": "assistant", "content": message.content})
        results = runner.generate_tool_call_response()
        if results is not None:
            messages.append(results)
        text = "".join(block.text for block in message.content if block.type == "text")
    return text


def side_by_side(messages) -> str:
    """Three questions behind the same history at the same time; the conversation goes on with the first."""
    last = messages[-1]["content"]
    branches = [messages[:-1] + [{"role": "user", "content": f"{last} (variant {at})"}] for at in range(3)]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda branch: answered(plain, branch), branches))
    messages[:] = branches[0]
    return answers[0]


def count_first(messages) -> str:
    count = client.messages.count_tokens(model=MODEL, system=SYSTEM, tools=tools, messages=messages).input_tokens
    message = plain(messages)
    usage = message.usage
    counted.append(
        (count, usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0))
    )
    return answered(lambda _: message, messages) if message.stop_reason != "tool_use" else rest(message, messages)


def rest(message, messages) -> str:
    first = [message]
    return answered(lambda now: first.pop() if first else plain(now), messages)


HOWS = {
    "plain": lambda messages: answered(plain, messages),
    "stream": lambda messages: answered(streamed, messages),
    "events": lambda messages: answered(events, messages),
    "runner": by_the_runner,
    "parallel": side_by_side,
    "count": count_first,
}

answer = ""
for turn in turns():
    history.append({"role": "user", "content": turn["text"]})
    answer = HOWS[turn["how"]](history)
done(answer, epoch=max(epochs), counted=counted, version=anthropic.__version__)
