//! Calls to language models over HTTP: Anthropic Messages and the OpenAI compatible APIs, streamed or whole.
