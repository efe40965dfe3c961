//! For those who drive an [`Engine`](throughline_engine::Engine) themselves, as a session does: between what an engine
//! says and what a [`Store`](throughline_store::Store) keeps, so that a session that was kept by one can be read by all.
//!
//! A [`Session`](crate::Session) needs none of this.

pub use crate::clock::Clock;
pub use crate::compactor::{draft, warm_up};
pub use crate::event::{event_json, event_kind};
pub use crate::session::kept::{Compared, Kept, KeptAdoption, KeptPin};
pub use crate::session::stored::{
    adoption_change, append, before, memory_change, message_of, quoted_range, row, snapshot,
    usage_change, version_of,
};
pub use crate::traffic::{Traffic, Waits};
