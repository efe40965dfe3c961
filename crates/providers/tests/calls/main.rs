//! Whole calls: against a scripted transport in paused time, and against a server on the loopback interface.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test that fails is a test that fails"
)]

mod loopback;
mod places;
mod privacy;
mod real;
mod retries;
mod scripted;
mod streams;
