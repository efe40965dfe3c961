"""What calls cost by the prices of the catalogue, which are those of the simulator."""

import json
import subprocess


class Prices:
    def __init__(self, throughline: str):
        listed = subprocess.run([throughline, "models", "--json"], check=True, capture_output=True, text=True)
        self._models = {}
        for model in json.loads(listed.stdout)["models"]:
            for name in [model["id"], *model["aliases"]]:
                self._models[name] = model["prices"]

    def of(self, model: str) -> dict:
        """The prices of a model: of its own name, or of the longest one that it begins with."""
        known = [name for name in self._models if model == name or model.startswith(name + "-")]
        prices = self._models[max(known, key=len)] if known else None
        if not prices:
            raise KeyError(f"the catalogue has no prices for {model}")
        return prices

    def dollars(self, model: str, usage: dict) -> float:
        """What a call cost that used this, on any of the three wires."""
        prices = self.of(model)
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        if details is not None or "prompt_tokens" in usage:
            # Of OpenAI's counts, the cached tokens are a part.
            details = details or {}
            read = details.get("cached_tokens") or 0
            written = details.get("cache_write_tokens") or details.get("cache_creation_tokens") or 0
            written_long = (details.get("cache_write_tokens_details") or {}).get("ttl_12h_tokens") or 0
            written -= written_long
            plain = (usage.get("prompt_tokens") or usage.get("input_tokens") or 0) - read - written - written_long
            said = usage.get("completion_tokens") or usage.get("output_tokens") or 0
        else:
            split = usage.get("cache_creation") or {}
            written_long = split.get("ephemeral_1h_input_tokens") or 0
            written = (usage.get("cache_creation_input_tokens") or 0) - written_long
            read = usage.get("cache_read_input_tokens") or 0
            plain = usage.get("input_tokens") or 0
            said = usage.get("output_tokens") or 0
        price = lambda name, instead: prices.get(name) if prices.get(name) is not None else prices[instead]
        return (
            plain * prices["input"]
            + written * price("cache_write", "input")
            + written_long * price("cache_write_long", "input")
            + read * price("cache_read", "input")
            + said * prices["output"]
        ) / 1e6
