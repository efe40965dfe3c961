//! Changes to a session, and the rules that hold for them in every store.

use bytes::Bytes;

use crate::error::{Counter, Invalid, StoreError};
use crate::limits::{USAGE_NANODOLLARS_MAX, USAGE_TOKENS_MAX};
use crate::memory::{Adoption, MemoryRow};
use crate::message::NewMessage;
use crate::usage::UsageRow;

/// One change to a session. A list of them is applied in order, all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Messages are added at the end.
    Append {
        /// How many messages the caller believes the session to have.
        expected_count: u64,
        /// The messages.
        messages: Vec<NewMessage>,
    },
    /// The session is cut to its first messages; the others stay readable as superseded ones.
    Truncate {
        /// How many messages remain.
        to_count: u64,
    },
    /// A memory version is added; its number must be one more than the newest.
    Memory(MemoryRow),
    /// From now on a memory version, or none, represents the covered messages.
    Adopt {
        /// The epoch that the caller believes to be the present one; 0 where nothing was adopted yet.
        expected_epoch: u64,
        /// What is adopted.
        adoption: Adoption,
    },
    /// The request body without its messages is replaced.
    Head(Bytes),
    /// The settings are replaced.
    Settings(String),
    /// The title is replaced.
    Title(String),
    /// The name of the model is replaced.
    Model(String),
    /// Something happened, at the time of the commit.
    Event {
        /// What kind of thing it is.
        kind: String,
        /// Its numbers and reasons, in a form that is the caller's own.
        json: String,
    },
    /// A model call was made.
    Usage(UsageRow),
}

/// The numbers that changes are compared with, and that they move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many messages the session has.
    pub message_count: u64,
    /// The newest memory version; 0 where there is none.
    pub memory_version: u64,
    /// The epoch of the last adoption; 0 where there is none.
    pub epoch: u64,
    /// How many messages the adopted memory covers; 0 where there is none.
    pub covered_count: u64,
}

impl Counts {
    /// The numbers after these changes, if they may be applied: the one place where the rules are written.
    pub(crate) fn after(mut self, changes: &[Change]) -> Result<Self, StoreError> {
        for change in changes {
            self.apply(change)?;
        }
        // Only the end counts: a cut below the cover and the adoption that follows it belong into one commit.
        if self.covered_count > self.message_count {
            return Err(StoreError::Invalid {
                reason: Invalid::CoversTooMuch,
            });
        }
        Ok(self)
    }

    pub(crate) fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Append {
                expected_count,
                messages,
            } => {
                expect(Counter::MessageCount, *expected_count, self.message_count)?;
                self.message_count += messages.len() as u64;
            }
            Change::Truncate { to_count } => {
                if *to_count > self.message_count {
                    return Err(StoreError::Invalid {
                        reason: Invalid::TruncatePastEnd,
                    });
                }
                self.message_count = *to_count;
            }
            Change::Memory(memory) => {
                if memory.covered_count > self.message_count {
                    return Err(StoreError::Invalid {
                        reason: Invalid::CoversTooMuch,
                    });
                }
                expect(
                    Counter::MemoryVersion,
                    memory.version.saturating_sub(1),
                    self.memory_version,
                )?;
                if memory.version == 0 {
                    return Err(StoreError::Invalid {
                        reason: Invalid::VersionZero,
                    });
                }
                self.memory_version = memory.version;
            }
            Change::Adopt {
                expected_epoch,
                adoption,
            } => {
                expect(Counter::Epoch, *expected_epoch, self.epoch)?;
                let is_another = adoption.covered_count != self.covered_count;
                if adoption.epoch < self.epoch + u64::from(is_another) {
                    return Err(StoreError::Invalid {
                        reason: Invalid::EpochNotRising,
                    });
                }
                if i64::try_from(adoption.epoch).is_err() {
                    return Err(StoreError::Invalid {
                        reason: Invalid::NumberTooLarge,
                    });
                }
                if adoption
                    .memory_version
                    .is_some_and(|version| !(1..=self.memory_version).contains(&version))
                {
                    return Err(StoreError::Invalid {
                        reason: Invalid::AdoptsMissingMemory,
                    });
                }
                self.epoch = adoption.epoch;
                self.covered_count = adoption.covered_count;
            }
            Change::Usage(usage) => {
                let tokens = [
                    usage.uncached,
                    usage.cache_write,
                    usage.cache_write_long,
                    usage.cache_read,
                    usage.output,
                ];
                let cost = usage.cost_nanodollars.unwrap_or(0).unsigned_abs();
                if tokens.into_iter().any(|tokens| tokens > USAGE_TOKENS_MAX)
                    || cost > USAGE_NANODOLLARS_MAX
                {
                    return Err(StoreError::Invalid {
                        reason: Invalid::NumberTooLarge,
                    });
                }
            }
            Change::Head(_)
            | Change::Settings(_)
            | Change::Title(_)
            | Change::Model(_)
            | Change::Event { .. } => {}
        }
        Ok(())
    }
}

fn expect(counter: Counter, expected: u64, found: u64) -> Result<(), StoreError> {
    if expected == found {
        Ok(())
    } else {
        Err(StoreError::Conflict {
            counter,
            expected,
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Purpose;

    const START: Counts = Counts {
        message_count: 4,
        memory_version: 2,
        epoch: 3,
        covered_count: 2,
    };

    fn append(expected_count: u64, count: usize) -> Change {
        Change::Append {
            expected_count,
            messages: vec![NewMessage::new("{}", [0; 32], "user", "", 1); count],
        }
    }

    fn memory(version: u64, covered_count: u64) -> Change {
        Change::Memory(MemoryRow {
            version,
            covered_count,
            digest: [0; 32],
            origin: "code".into(),
            json: "{}".into(),
            markdown: String::new(),
            created_ms: 0,
            tokens: 1,
        })
    }

    fn adopt(
        expected_epoch: u64,
        epoch: u64,
        memory_version: Option<u64>,
        covered_count: u64,
    ) -> Change {
        let adoption = Adoption {
            epoch,
            memory_version,
            covered_count,
            state: String::new(),
            at_ms: 0,
        };
        Change::Adopt {
            expected_epoch,
            adoption,
        }
    }

    #[track_caller]
    fn check(changes: &[Change], expected: Result<(u64, u64, u64, u64), &str>) {
        let found = START
            .after(changes)
            .map(|counts| {
                (
                    counts.message_count,
                    counts.memory_version,
                    counts.epoch,
                    counts.covered_count,
                )
            })
            .map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn rules_of_changes() {
        check(&[], Ok((4, 2, 3, 2)));
        check(&[append(4, 2), append(6, 1)], Ok((7, 2, 3, 2)));
        check(&[append(3, 2)], Err("expected message count 3, found 4"));
        check(
            &[append(4, 1), append(4, 1)],
            Err("expected message count 4, found 5"),
        );
        check(&[Change::Truncate { to_count: 2 }], Ok((2, 2, 3, 2)));
        check(
            &[Change::Truncate { to_count: 5 }],
            Err(
                "changes that cannot be applied: a session cannot be cut to more messages than it has",
            ),
        );
        check(
            &[Change::Truncate { to_count: 1 }],
            Err(
                "changes that cannot be applied: a memory cannot cover more messages than the session has",
            ),
        );
        check(
            &[Change::Truncate { to_count: 1 }, adopt(3, 4, None, 0)],
            Ok((1, 2, 4, 0)),
        );
        check(&[memory(3, 4), adopt(3, 4, Some(3), 4)], Ok((4, 3, 4, 4)));
        check(&[memory(4, 4)], Err("expected memory version 3, found 2"));
        check(&[memory(2, 4)], Err("expected memory version 1, found 2"));
        check(&[adopt(2, 3, None, 0)], Err("expected epoch 2, found 3"));
        let not_rising = "changes that cannot be applied: an epoch must be greater than the one before if it covers other messages, and never smaller";
        check(&[adopt(3, 3, None, 0)], Err(not_rising));
        check(&[adopt(3, 2, Some(2), 2)], Err(not_rising));
        check(&[adopt(3, 3, Some(2), 2)], Ok((4, 2, 3, 2)));
        let of_call = |uncached, cost_nanodollars| {
            Change::Usage(UsageRow {
                at_ms: 0,
                purpose: Purpose::Main,
                model: String::new(),
                uncached,
                cache_write: 0,
                cache_write_long: 0,
                cache_read: 0,
                output: 0,
                cost_nanodollars: Some(cost_nanodollars),
                request_id: None,
            })
        };
        let dearest = USAGE_NANODOLLARS_MAX as i64;
        check(&[of_call(USAGE_TOKENS_MAX, -dearest)], Ok((4, 2, 3, 2)));
        let too_large = "changes that cannot be applied: a number is larger than a store keeps";
        check(&[of_call(USAGE_TOKENS_MAX + 1, 0)], Err(too_large));
        check(&[of_call(0, dearest + 1)], Err(too_large));
        for version in [0, 3] {
            check(
                &[adopt(3, 4, Some(version), 0)],
                Err("changes that cannot be applied: the adopted memory version does not exist"),
            );
        }
    }
}
