"""The conversation that every client holds: what is said in each turn, and what the tools answer.

The same in all clients, so that it is written here once and given to the others as a file (`write`).
"""

import hashlib
import json
import random

FACT = "eu-north-3"
FIRST = f"Remember: the deploy region is {FACT}. We are moving the billing service, one step at a time. Just confirm."
QUESTION = "What is the deploy region?"

PLACES = ["the intake queue", "the ledger export", "the retry worker", "the price table", "the audit log", "the web hook"]
THINGS = ["a long queue", "a full buffer", "two open connections", "an idle worker", "a slow query", "a large batch"]
PEOPLE = ["Ines", "Tomas", "Priya", "Jonas", "Mei", "Olu"]


def notes(seed: str, sentences: int) -> str:
    """Notes as somebody pastes them: the same for the same seed."""
    dice = random.Random(seed)
    lines = []
    for _ in range(sentences):
        number = dice.randrange(1000, 9999)
        lines.append(
            f"{dice.choice(PEOPLE)} looked at {dice.choice(PLACES)} and found {dice.choice(THINGS)} in request "
            f"{number}; {dice.choice(PLACES)} took {dice.randrange(20, 900)} ms and was left as it is."
        )
    return "\n".join(lines)


def turns(hows: list[str], count: int, sentences: int = 24) -> list[dict]:
    """`count` turns, each with the way in which it is to be asked; a fact in the first, the question in the last."""
    told = [{"how": hows[0], "text": FIRST + "\n\n" + notes("first", sentences)}]
    for at in range(1, count - 1):
        text = f"Step {at}: these are the notes of day {at}. Say briefly what to look at next.\n\n" + notes(str(at), sentences)
        told.append({"how": hows[at % len(hows)], "text": text})
    told.append({"how": hows[0], "text": QUESTION})
    return told


def write(path: str, hows: list[str], count: int, sentences: int = 24) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(turns(hows, count, sentences), file)


def tool_answer(name: str, arguments: object) -> str:
    """What a tool answers: some lines that hang on what it was asked."""
    asked = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{name} {asked}".encode()).hexdigest()
    return f"{name}: 8 lines, digest {digest[:12]}\n" + notes(digest, 8)
