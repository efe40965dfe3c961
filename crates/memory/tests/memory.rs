//! What a memory made by code holds, from messages to the rendering.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of the test functions"
)]

mod memory {
    mod attachments;
    mod calls;
    mod cases;
    mod conversation;
    mod languages;
    mod limits;
    mod requests;
    mod secrets;
    mod summaries;
    mod updates;
}
