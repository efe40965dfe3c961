//! Conversations with language models that go on past their context window: sessions with a memory that is built in the background and swapped in at once.
