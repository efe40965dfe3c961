//! What `throughline serve` writes to standard error: ids and numbers, never text of conversations.

use std::io;

use throughline_proxy::SPANS;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt as _;

#[cfg(feature = "otel")]
use super::spans::Spans;
use crate::arguments::serve::{LogFormat, LogLevel, Logging};
use crate::error::{Failure, Kind};

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// What is logged while the proxy runs.
pub(super) struct Log {
    #[cfg(feature = "otel")]
    spans: Option<Spans>,
}

impl Log {
    /// Tells what is still to be told.
    pub(super) async fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(spans) = self.spans {
            spans.end().await;
        }
    }
}

/// Begins to tell. To be called within a runtime.
pub(super) fn start(logging: &Logging) -> Result<Log, Failure> {
    let lines: Option<BoxedLayer> = match logging.log {
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
    let mut layers: Vec<BoxedLayer> = Vec::new();
    if let Some(lines) = lines {
        layers.push(lines.with_filter(filter(logging.log_level)).boxed());
    }
    #[cfg(feature = "otel")]
    let spans = Spans::of_environment()?;
    #[cfg(feature = "otel")]
    layers.extend(spans.as_ref().map(|spans| spans.layer().boxed()));
    tracing_subscriber::registry()
        .with(layers)
        .try_init()
        .map_err(|error| Failure::new(Kind::Bug, format!("no log can be written: {error}")))?;
    Ok(Log {
        #[cfg(feature = "otel")]
        spans,
    })
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
        // They say what the lines say.
        .with_target(SPANS, LevelFilter::OFF)
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
            (LogLevel::Debug, SPANS, Level::INFO, false),
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
