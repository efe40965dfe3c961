//! The engine in a world of its own: a transcript, a store, compactors and a provider in virtual time.

#[path = "engine/world.rs"]
mod world;

#[path = "engine/asked.rs"]
mod asked;
#[path = "engine/cases.rs"]
mod cases;
#[path = "engine/history.rs"]
mod history;
#[path = "engine/properties.rs"]
mod properties;
#[path = "engine/swaps.rs"]
mod swaps;
#[path = "engine/updates.rs"]
mod updates;
