"""OpenAI's Python SDK, Responses: plain, streamed, with tools, the tool runner, token counts, side by side.

The history is the client's: `store` is off, reasoning comes encrypted and is sent back.
"""

from concurrent.futures import ThreadPoolExecutor

import openai
from client import BASE_URL, KEY, MAX_TOKENS, MODEL, SYSTEM, TOOLS, done, run_tool, schema, turns
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
tools = [
    {"type": "function", "name": name, "description": text, "parameters": schema(fields), "strict": True}
    for name, (text, fields) in TOOLS.items()
]
head = {
    "model": MODEL,
    "max_output_tokens": MAX_TOKENS,
    "tools": tools,
    "instructions": SYSTEM,
    "store": False,
    "include": ["reasoning.encrypted_content"],
}
history: list = []
epochs: list[int] = []
counted: list[tuple[int | None, int]] = []


def items(response) -> list:
    return [item.model_dump(exclude_none=True, exclude={"parsed_arguments", "parsed"}) for item in response.output]


def plain(sent):
    raw = client.responses.with_raw_response.create(**head, input=sent)
    epochs.append(int(raw.headers.get("x-throughline-epoch", 0)))
    return raw.parse()


def streamed(sent):
    with client.responses.stream(**head, input=sent) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def events(sent):
    last = None
    for event in client.responses.create(**head, input=sent, stream=True):
        last = event
    assert last.type == "response.completed", last.type
    return last.response


def answered(ask, sent) -> str:
    while True:
        response = ask(sent)
        text = keep(response, sent)
        if not any(item.type == "function_call" for item in response.output):
            return text


def keep(response, sent) -> str:
    """The items of an answer become history, and the outputs of its calls."""
    for item in items(response):
        for part in item.get("content") or []:
            part.pop("parsed", None)
        sent.append(item)
    for call in response.output:
        if call.type == "function_call":
            result = run_tool(call.name, call.arguments)
            sent.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    return response.output_text


def side_by_side(sent) -> str:
    last = sent[-1]["content"]
    branches = [sent[:-1] + [{"role": "user", "content": f"{last} (variant {at})"}] for at in range(3)]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda branch: answered(plain, branch), branches))
    sent[:] = branches[0]
    return answers[0]


def count_first(sent) -> str:
    try:
        counter = client.responses.input_tokens
        count = counter.count(model=MODEL, input=sent, tools=tools, instructions=SYSTEM).input_tokens
    except openai.BadRequestError:
        # Is told by the taps; the conversation goes on.
        count = None
    first = [plain(sent)]
    counted.append((count, first[0].usage.input_tokens))
    return answered(lambda now: first.pop() if first else plain(now), sent)


def by_the_runner(sent) -> str:
    functions = [
        RegisteredFunction(tool=tool, execute=lambda arguments, name=tool["name"]: run_tool(name, arguments))
        for tool in tools
    ]
    runner = ResponsesToolRunner(functions=functions)
    params = {key: value for key, value in head.items() if key != "tools"} | {"input": list(sent)}
    text = ""
    for turn in runner.iterate(client, params, max_steps=20):
        text = keep(turn.response, sent)
    return text


HOWS = {
    "plain": lambda sent: answered(plain, sent),
    "stream": lambda sent: answered(streamed, sent),
    "events": lambda sent: answered(events, sent),
    "parallel": side_by_side,
    "count": count_first,
    "runner": by_the_runner,
}

answer = ""
for turn in turns():
    history.append({"role": "user", "content": turn["text"]})
    answer = HOWS[turn["how"]](history)
done(answer, epoch=max(epochs), counted=counted, version=openai.__version__)
