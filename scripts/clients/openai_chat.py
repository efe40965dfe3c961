"""OpenAI's Python SDK, Chat Completions: plain, streamed (by hand and by the helper), with tools, side by side."""

from concurrent.futures import ThreadPoolExecutor

import openai
from client import BASE_URL, KEY, MAX_TOKENS, MODEL, SYSTEM, TOOLS, done, run_tool, schema, turns

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
tools = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": schema(fields), "strict": True}}
    for name, (text, fields) in TOOLS.items()
]
head = {"model": MODEL, "max_completion_tokens": MAX_TOKENS, "tools": tools}
history: list = [{"role": "system", "content": SYSTEM}]
epochs: list[int] = []


def plain(messages):
    raw = client.chat.completions.with_raw_response.create(**head, messages=messages)
    epochs.append(int(raw.headers.get("x-throughline-epoch", 0)))
    return raw.parse().choices[0].message.model_dump(exclude_none=True)


def streamed(messages):
    with client.chat.completions.stream(**head, messages=messages, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    kept = message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
    for call in kept.get("tool_calls", []):
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
    return kept


def events(messages):
    """Chunks put together by hand."""
    text, calls = "", {}
    for chunk in client.chat.completions.create(
        **head, messages=messages, stream=True, stream_options={"include_usage": True}
    ):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(
                    part.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] += part.id or ""
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    message = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = list(calls.values())
    return message


def answered(ask, messages) -> str:
    while True:
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return message.get("content") or ""
        for call in calls:
            result = run_tool(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def side_by_side(messages) -> str:
    last = messages[-1]["content"]
    branches = [messages[:-1] + [{"role": "user", "content": f"{last} (variant {at})"}] for at in range(3)]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda branch: answered(plain, branch), branches))
    messages[:] = branches[0]
    return answers[0]


HOWS = {
    "plain": lambda messages: answered(plain, messages),
    "stream": lambda messages: answered(streamed, messages),
    "events": lambda messages: answered(events, messages),
    "parallel": side_by_side,
}

answer = ""
for turn in turns():
    history.append({"role": "user", "content": turn["text"]})
    answer = HOWS[turn["how"]](history)
done(answer, epoch=max(epochs), version=openai.__version__)
