//! The time, for the engine.

use jiff::Timestamp;
use throughline_engine::Time;
use tokio::time::Instant;

/// Wall-clock time that advances with tokio's clock, so that a session in virtual time has virtual times.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ms: i64,
    start: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock that shows the time of now.
    #[must_use]
    pub fn new() -> Self {
        Self::showing(Time::from_ms(Timestamp::now().as_millisecond()))
    }

    /// A clock that shows this time now: what is done again by it is done alike.
    #[must_use]
    pub fn showing(now: Time) -> Self {
        Self {
            start_ms: now.ms(),
            start: Instant::now(),
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        let passed = self.start.elapsed().as_millis();
        Time::from_ms(
            self.start_ms
                .saturating_add(i64::try_from(passed).unwrap_or(i64::MAX)),
        )
    }
}
