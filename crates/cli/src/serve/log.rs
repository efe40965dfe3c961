//! What `throughline serve` writes to standard error: ids and numbers, never what was said.

use std::io;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::arguments::serve::{LogFormat, LogLevel, Logging};
use crate::error::{Failure, Kind};

type Lines = Box<dyn Layer<Registry> + Send + Sync>;

/// Begins to write.
pub(super) fn start(logging: &Logging) -> Result<(), Failure> {
    let lines: Option<Lines> = match logging.log {
        LogFormat::Off => None,
        LogFormat::Text => {
            let lines = tracing_subscriber::fmt::layer().with_ansi(false);
            Some(lines.with_writer(io::stderr).boxed())
        }
        LogFormat::Json => {
            let lines = tracing_subscriber::fmt::layer().json().flatten_event(true);
            Some(lines.with_writer(io::stderr).boxed())
        }
    };
    let lines = lines.map(|lines| lines.with_filter(filter(logging.log_level)));
    tracing_subscriber::registry()
        .with(lines)
        .try_init()
        .map_err(|error| Failure::new(Kind::Bug, format!("no log can be written: {error}")))
}

/// What is written. Libraries may say anything in detail, headers too: of them only what went wrong.
fn filter(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("throughline", level)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn libraries_tell_only_what_went_wrong() {
        for (level, target, event, expected) in [
            (LogLevel::Info, "throughline_proxy", Level::INFO, true),
            (LogLevel::Info, "throughline_proxy", Level::DEBUG, false),
            (LogLevel::Debug, "throughline_engine", Level::DEBUG, true),
            (LogLevel::Debug, "h2::codec", Level::DEBUG, false),
            (LogLevel::Debug, "hyper", Level::WARN, true),
            (LogLevel::Error, "hyper", Level::WARN, false),
            (LogLevel::Error, "throughline_proxy", Level::WARN, false),
            (LogLevel::Error, "throughline_proxy", Level::ERROR, true),
        ] {
            let is_written = filter(level).would_enable(target, &event);
            assert_eq!(is_written, expected, "{level:?} {target} {event}");
        }
    }
}
