//! What a memory made by code holds, from messages to the rendering.

mod memory {
    mod cases;
    mod conversation;
    mod languages;
    mod limits;
    mod updates;
}
