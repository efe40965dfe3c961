//! The proxy between clients and a simulated provider, in virtual time.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod admin;
mod both;
mod economy;
mod faults;
mod folders;
mod guard;
mod identity;
mod log;
mod passing;
mod sockets;
mod stored;
mod uploads;
mod windows;
mod wire_names;
mod world;
