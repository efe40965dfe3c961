//! When a conversation is compacted and by what: budgets, triggers, cuts, updates, swaps and their price, without input or output.
