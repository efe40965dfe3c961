"""What the client programs have in common: where the proxy is, what is to be said, and how the end is told."""

import json
import os
import sys

from conversation import tool_answer

BASE_URL = os.environ["BASE_URL"]
MODEL = os.environ["MODEL"]
KEY = "any-key"
MAX_TOKENS = 1500
SYSTEM = "You are a careful assistant of a team that moves a billing service. " + "Answer briefly and name what you saw. " * 8

TOOLS = {
    "read_file": ("Read a file of the repository.", {"path": "Path from the root of the repository."}),
    "search": ("Search the repository for words.", {"query": "Words to look for.", "where": "Folder to look in."}),
}


def schema(fields: dict) -> dict:
    properties = {name: {"type": "string", "description": text} for name, text in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}


def turns() -> list[dict]:
    with open(os.environ["TURNS"], encoding="utf-8") as file:
        return json.load(file)


def run_tool(name: str, arguments: object) -> str:
    if isinstance(arguments, str):
        arguments = json.loads(arguments or "{}")
    return tool_answer(name, arguments)


def done(answer: str, **observed: object) -> None:
    """The last line of the output: what was answered to the question, and what else was seen."""
    print(json.dumps({"answer": answer, **observed}), flush=True)
    sys.exit(0)
