//! The demo as a picture: tokens of the context, request by request.

use std::time::Duration;

use throughline_dashboard::chart::{Line, lines};

use super::play::{PlayedSession, Way};
use crate::words;

/// Draws all ways into one chart.
pub(crate) fn svg(played: &[PlayedSession]) -> String {
    let of = |played: &PlayedSession| Line {
        label: label(played),
        color: color(played.way),
        tokens: played.contexts.clone(),
        is_cut_off: played.refused > 0,
    };
    let played: Vec<Line> = played.iter().map(of).collect();
    lines("Tokens of the context, request by request", &played)
}

fn label(played: &PlayedSession) -> String {
    let waited: f64 = played.waits.iter().map(Duration::as_secs_f64).sum();
    match played.way {
        Way::None => format!(
            "no compaction: {} refused",
            words::counted(played.refused, "request")
        ),
        Way::Traditional | Way::Instant => format!(
            "{}: {}, {} waited in all",
            played.way.title(),
            words::counted(played.waits.len(), "swap"),
            if waited < 1.0 {
                format!("{:.0} ms", waited * 1000.0)
            } else {
                format!("{waited:.0} s")
            }
        ),
    }
}

fn color(way: Way) -> &'static str {
    match way {
        Way::None => "#969696",
        Way::Traditional => "#d66e1e",
        Way::Instant => "#1e6ebe",
    }
}
