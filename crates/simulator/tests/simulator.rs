//! The simulator as its callers meet it: requests in, exchanges out, in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

#[path = "simulator/agreement.rs"]
mod agreement;
#[path = "simulator/caching.rs"]
mod caching;
#[path = "simulator/faults.rs"]
mod faults;
#[path = "simulator/memories.rs"]
mod memories;
#[path = "simulator/openai.rs"]
mod openai;
#[path = "simulator/persona.rs"]
mod persona;
#[path = "simulator/rules.rs"]
mod rules;
#[path = "simulator/socket.rs"]
mod socket;
#[path = "simulator/speed.rs"]
mod speed;
#[path = "simulator/streaming.rs"]
mod streaming;
#[path = "simulator/support.rs"]
mod support;
#[path = "simulator/thinking.rs"]
mod thinking;
#[path = "simulator/transport.rs"]
mod transport;
