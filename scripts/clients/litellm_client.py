"""LiteLLM as a client: `completion` of an Anthropic and of an OpenAI model, with tools, streamed, side by side."""

import os
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import litellm
from client import BASE_URL, KEY, MAX_TOKENS, MODEL, SYSTEM, TOOLS, done, run_tool, schema, turns

litellm.telemetry = False
litellm.suppress_debug_info = True
provider = "anthropic" if os.environ["CLIENT"] == "litellm-anthropic" else "openai"
tools = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": schema(fields)}}
    for name, (text, fields) in TOOLS.items()
]
head = {
    "model": f"{provider}/{MODEL}",
    "api_base": BASE_URL,
    "api_key": KEY,
    "max_tokens": MAX_TOKENS,
    "tools": tools,
    "num_retries": 0,
}
history: list = [{"role": "system", "content": SYSTEM}]
epochs: list[int] = []


def plain(messages):
    answer = litellm.completion(**head, messages=messages)
    headers = (answer._hidden_params or {}).get("additional_headers") or {}
    epochs.append(int(headers.get("llm_provider-x-throughline-epoch", 0)))
    return answer.choices[0].message


def streamed(messages):
    chunks = list(litellm.completion(**head, messages=messages, stream=True, stream_options={"include_usage": True}))
    return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message


def answered(ask, messages) -> str:
    while True:
        message = ask(messages)
        messages.append(message)
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = run_tool(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def side_by_side(messages) -> str:
    last = messages[-1]["content"]
    branches = [messages[:-1] + [{"role": "user", "content": f"{last} (variant {at})"}] for at in range(2)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda branch: answered(plain, branch), branches))
    messages[:] = branches[0]
    return answers[0]


HOWS = {
    "plain": lambda messages: answered(plain, messages),
    "stream": lambda messages: answered(streamed, messages),
    "parallel": side_by_side,
}

answer = ""
for turn in turns():
    history.append({"role": "user", "content": turn["text"]})
    answer = HOWS[turn["how"]](history)
done(answer, epoch=max(epochs), version=version("litellm"))
