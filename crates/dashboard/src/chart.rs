//! Charts as SVG: the timeline of a session for its page, and lines that compare sessions.

mod lines;
mod svg;
mod timeline;

pub use self::lines::{Line, lines};
pub(crate) use self::svg::{dollars, short};
pub(crate) use self::timeline::draw;
