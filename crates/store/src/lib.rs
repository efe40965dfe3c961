//! Where sessions are kept: messages, memories, events and usage, in memory, in plain files or in SQLite.
