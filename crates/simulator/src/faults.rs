//! Faults and when they happen: scripted, or by chance from the seed.
//!
//! Faults are written in a small language, on the command line as in tests: rules with commas between them, each the
//! name of a fault, its parameter after `=`, and either `:` with a probability or `@` with the calls that it
//! hits, counted from 1 (`@3`, `@3-5`, `@2+7`). Without either it hits every call.
//!
//! | rule | what happens |
//! | --- | --- |
//! | `429`, `429=30`, `429=none` | rate limit, with `retry-after` of 5 (or 30) seconds, or without |
//! | `spend-cap` | 429 that no waiting helps against |
//! | `500`, `504`, `529` | error, timeout, overload of the provider |
//! | `cut`, `cut=12` | the connection breaks in the middle of the answer, or after 12 events |
//! | `stall`, `stall=12` | the answer stops and the connection stays open |
//! | `error`, `error=12` | an error event in the middle of the stream (500 if the answer is not streamed) |
//! | `slow=30` | the first byte comes 30 seconds later |
//! | `pause` | the reply ends with `pause_turn` (Anthropic) |
//! | `refusal`, `truncated` | the reply is refused, or cut off as if `max_tokens` were reached |
//! | `summary=KIND` | a request for a summary is answered by KIND: `empty`, `null`, `toolcall`, `refusal`, `error`, `truncated`, `skeleton`, `language`, `larger`, `blank`, `prose` |
//!
//! Rules for summaries count requests for summaries, all others count the calls that would have been answered. The
//! first rule that hits counts.
//!
//! ```
//! use throughline_simulator::Faults;
//!
//! let faults: Faults = "429:0.05, 529@3, cut=5@2+7, summary=empty@2".parse()?;
//! assert_eq!(faults.to_string(), "429:0.05,529@3,cut=5@2+7,summary=empty@2");
//! let error = "429:0.05,52@3".parse::<Faults>().unwrap_err();
//! assert_eq!(error.to_string(), "faults, character 10: there is no fault \"52\"");
//! # Ok::<(), throughline_simulator::FaultsError>(())
//! ```

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::dice::Dice;

/// Most rules in one specification.
pub const RULES_MAX: usize = 100;

/// A list of rules by which calls go wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    rules: Vec<Rule>,
}

/// A fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// 429, with the seconds of `retry-after`.
    RateLimit {
        /// Seconds; `None` leaves the header out.
        retry_after_s: Option<u32>,
    },
    /// 429 without `retry-after`: the money is spent.
    SpendCap,
    /// 500.
    ServerError,
    /// 504.
    Timeout,
    /// 529.
    Overloaded,
    /// The connection breaks after this many events; `None` is anywhere.
    Cut(Option<u32>),
    /// The stream stalls after this many events; `None` is anywhere.
    Stall(Option<u32>),
    /// An error event after this many events; `None` is anywhere.
    StreamError(Option<u32>),
    /// The first byte is late.
    SlowStart(Duration),
    /// The reply ends with `pause_turn`.
    Pause,
    /// The reply is a refusal.
    Refusal,
    /// The reply is cut off as if `max_tokens` were reached.
    Truncated,
    /// A summary is unfit.
    Summary(BadSummary),
}

/// How a summary can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadSummary {
    /// No text at all: a text block that is empty.
    Empty,
    /// No content: a compaction block without content, otherwise a reply without blocks.
    Null,
    /// White space.
    Blank,
    /// A tool is called instead.
    ToolCall,
    /// The model refuses.
    Refusal,
    /// The text is an error message.
    ErrorText,
    /// It is cut off with `max_tokens`.
    Truncated,
    /// Empty headings, or empty fields of the schema.
    Skeleton,
    /// It is written in another language than the conversation.
    Language,
    /// It is longer than what it summarises.
    Larger,
    /// Chat about the summary instead of the summary, no JSON where JSON is required.
    Prose,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    fault: Fault,
    hits: Hits,
}

#[derive(Clone, Debug, PartialEq)]
enum Hits {
    Always,
    Probability(f64),
    /// Calls from ... to, both included.
    Calls(Vec<(u64, u64)>),
}

/// Why a specification cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("faults, character {character}: {reason}")]
pub struct FaultsError {
    /// Where, counted from 1.
    pub character: usize,
    /// What is wrong there.
    pub reason: FaultsErrorReason,
}

/// What is wrong with a specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultsErrorReason {
    /// An item between commas is empty.
    #[error("a rule is missing next to the comma")]
    NoRule,
    /// The name is none of a fault.
    #[error("there is no fault {0:?}")]
    UnknownFault(String),
    /// The name after `summary=` is none.
    #[error(
        "there is no bad summary {0:?} (known: empty, null, blank, toolcall, refusal, error, truncated, skeleton, language, larger, prose)"
    )]
    UnknownSummary(String),
    /// The value after `=` does not fit the fault.
    #[error("{fault} cannot be {value:?}")]
    Value {
        /// The fault.
        fault: &'static str,
        /// The value.
        value: String,
    },
    /// The fault needs a value after `=`.
    #[error("{0} needs a value, such as {0}=...")]
    ValueMissing(&'static str),
    /// No number from 0 to 1 after `:`.
    #[error("a probability is a number from 0 to 1, not {0:?}")]
    Probability(String),
    /// No numbers of calls after `@`.
    #[error("calls are numbers from 1 on, such as 3, 2+7 or 3-5, not {0:?}")]
    Calls(String),
    /// More than [`RULES_MAX`] rules.
    #[error("more than {RULES_MAX} rules")]
    TooMany,
}

/// The counters that decide which calls a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Calls that would have been answered so far, this one included.
    pub(crate) calls: u64,
    /// Requests for summaries so far, this one included; `None` if this is none.
    pub(crate) summaries: Option<u64>,
}

impl Faults {
    /// No faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The fault that hits a call.
    pub(crate) fn strike(&self, counts: Counts, seed: u64) -> Option<Fault> {
        self.rules.iter().enumerate().find_map(|(index, rule)| {
            let number = match rule.fault {
                Fault::Summary(_) => counts.summaries?,
                _ => counts.calls,
            };
            let hits = match &rule.hits {
                Hits::Always => true,
                Hits::Probability(probability) => {
                    let facts: [&[u8]; 2] = [&index.to_le_bytes(), &counts.calls.to_le_bytes()];
                    Dice::new(seed, "fault", &facts).happens(*probability)
                }
                Hits::Calls(calls) => calls
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&number)),
            };
            hits.then_some(rule.fault)
        })
    }
}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut rules = Vec::new();
        if text.trim().is_empty() {
            return Ok(Self { rules });
        }
        let mut start = 0;
        for part in text.split(',') {
            let rule = part.trim();
            let at = start + (part.len() - part.trim_start().len());
            start += part.len() + 1;
            let error = |offset: usize, reason| FaultsError {
                character: text
                    .get(..at + offset)
                    .map_or(at + offset, |before| before.chars().count())
                    + 1,
                reason,
            };
            if rule.is_empty() {
                return Err(error(0, FaultsErrorReason::NoRule));
            }
            if rules.len() == RULES_MAX {
                return Err(error(0, FaultsErrorReason::TooMany));
            }
            let name_end = rule.find([':', '@']).unwrap_or(rule.len());
            let (named, hits) = rule.split_at(name_end);
            let (name, value) = match named.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (named, None),
            };
            let fault = fault(name, value).map_err(|reason| {
                let is_name = matches!(reason, FaultsErrorReason::UnknownFault(_));
                error(if is_name { 0 } else { name.len() + 1 }, reason)
            })?;
            let hits = parse_hits(hits).map_err(|reason| error(name_end + 1, reason))?;
            rules.push(Rule { fault, hits });
        }
        Ok(Self { rules })
    }
}

/// Faults without a value, by their names.
const PLAIN_FAULTS: [(&str, Fault); 7] = [
    ("spend-cap", Fault::SpendCap),
    ("500", Fault::ServerError),
    ("504", Fault::Timeout),
    ("529", Fault::Overloaded),
    ("pause", Fault::Pause),
    ("refusal", Fault::Refusal),
    ("truncated", Fault::Truncated),
];

fn fault(name: &str, value: Option<&str>) -> Result<Fault, FaultsErrorReason> {
    let refuse = |fault: &'static str, value: &str| FaultsErrorReason::Value {
        fault,
        value: value.to_owned(),
    };
    let number = |fault: &'static str| -> Result<Option<u32>, FaultsErrorReason> {
        match value {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| refuse(fault, text)),
        }
    };
    if let Some((known, fault)) = PLAIN_FAULTS.into_iter().find(|(known, _)| *known == name) {
        return match value {
            None => Ok(fault),
            Some(value) => Err(refuse(known, value)),
        };
    }
    match name {
        "429" => Ok(Fault::RateLimit {
            retry_after_s: match value {
                Some("none") => None,
                _ => Some(number("429")?.unwrap_or(5)),
            },
        }),
        "cut" => Ok(Fault::Cut(number("cut")?)),
        "stall" => Ok(Fault::Stall(number("stall")?)),
        "error" => Ok(Fault::StreamError(number("error")?)),
        "slow" => match value {
            Some(text) => {
                let seconds = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
                match seconds {
                    Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => {
                        Ok(Fault::SlowStart(Duration::from_secs_f64(seconds)))
                    }
                    _ => Err(refuse("slow", text)),
                }
            }
            None => Err(FaultsErrorReason::ValueMissing("slow")),
        },
        "summary" => match value {
            Some(kind) => BadSummary::from_name(kind)
                .map(Fault::Summary)
                .ok_or_else(|| FaultsErrorReason::UnknownSummary(kind.to_owned())),
            None => Err(FaultsErrorReason::ValueMissing("summary")),
        },
        _ => Err(FaultsErrorReason::UnknownFault(name.to_owned())),
    }
}

fn parse_hits(text: &str) -> Result<Hits, FaultsErrorReason> {
    if let Some(probability) = text.strip_prefix(':') {
        return match probability.parse::<f64>() {
            Ok(number) if (0.0..=1.0).contains(&number) => Ok(Hits::Probability(number)),
            _ => Err(FaultsErrorReason::Probability(probability.to_owned())),
        };
    }
    let Some(calls) = text.strip_prefix('@') else {
        return Ok(Hits::Always);
    };
    let refused = || FaultsErrorReason::Calls(calls.to_owned());
    let mut ranges = Vec::new();
    for part in calls.split('+') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let from: u64 = from.parse().map_err(|_| refused())?;
        let to: u64 = to.parse().map_err(|_| refused())?;
        if from == 0 || to < from {
            return Err(refused());
        }
        ranges.push((from, to));
    }
    Ok(Hits::Calls(ranges))
}

impl BadSummary {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Empty, "empty"),
        (Self::Null, "null"),
        (Self::Blank, "blank"),
        (Self::ToolCall, "toolcall"),
        (Self::Refusal, "refusal"),
        (Self::ErrorText, "error"),
        (Self::Truncated, "truncated"),
        (Self::Skeleton, "skeleton"),
        (Self::Language, "language"),
        (Self::Larger, "larger"),
        (Self::Prose, "prose"),
    ];

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| kind)
    }

    fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.rules.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}{}", rule.fault, rule.hits)?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = |f: &mut fmt::Formatter<'_>, name: &str, events: &Option<u32>| match events {
            Some(events) => write!(f, "{name}={events}"),
            None => f.write_str(name),
        };
        match self {
            Self::RateLimit {
                retry_after_s: Some(5),
            } => f.write_str("429"),
            Self::RateLimit {
                retry_after_s: Some(seconds),
            } => write!(f, "429={seconds}"),
            Self::RateLimit {
                retry_after_s: None,
            } => f.write_str("429=none"),
            Self::Cut(at) => events(f, "cut", at),
            Self::Stall(at) => events(f, "stall", at),
            Self::StreamError(at) => events(f, "error", at),
            Self::SlowStart(by) => write!(f, "slow={}", by.as_secs_f64()),
            Self::Summary(kind) => write!(f, "summary={}", kind.name()),
            plain => {
                let known = PLAIN_FAULTS.iter().find(|(_, fault)| fault == plain);
                f.write_str(known.map_or("", |(name, _)| name))
            }
        }
    }
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::Probability(probability) => write!(f, ":{probability}"),
            Self::Calls(ranges) => {
                for (index, (from, to)) in ranges.iter().enumerate() {
                    f.write_str(if index == 0 { "@" } else { "+" })?;
                    match from == to {
                        true => write!(f, "{from}")?,
                        false => write!(f, "{from}-{to}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_back() {
        let check = |text: &str, expected: &str| {
            let faults: Faults = text.parse().unwrap();
            assert_eq!(faults.to_string(), expected, "{text}");
            assert_eq!(expected.parse(), Ok(faults), "{text}");
        };
        check("", "");
        check("429:0.05", "429:0.05");
        check("429=30@1,429=none", "429=30@1,429=none");
        check(" ", "");
        check(" 529@3 , cut@5 ", "529@3,cut@5");
        check("cut=12@2-4+9", "cut=12@2-4+9");
        check("slow=30s", "slow=30");
        check("summary=toolcall@1", "summary=toolcall@1");
        check(
            "spend-cap,500,504,stall,error=3,pause,refusal,truncated",
            "spend-cap,500,504,stall,error=3,pause,refusal,truncated",
        );
        for (_, name) in BadSummary::ALL {
            check(&format!("summary={name}"), &format!("summary={name}"));
        }
    }

    #[test]
    fn mistakes_say_where() {
        let check = |text: &str, expected: &str| {
            assert_eq!(text.parse::<Faults>().unwrap_err().to_string(), expected);
        };
        check(
            "529, nonsense",
            "faults, character 6: there is no fault \"nonsense\"",
        );
        let missing = |at| format!("faults, character {at}: a rule is missing next to the comma");
        check(",", &missing(1));
        check("529,", &missing(5));
        check("529@3,, cut@5", &missing(7));
        check("429=x", "faults, character 5: 429 cannot be \"x\"");
        check("529=2", "faults, character 5: 529 cannot be \"2\"");
        check(
            "slow",
            "faults, character 6: slow needs a value, such as slow=...",
        );
        check(
            "529:2",
            "faults, character 5: a probability is a number from 0 to 1, not \"2\"",
        );
        check(
            "529:NaN",
            "faults, character 5: a probability is a number from 0 to 1, not \"NaN\"",
        );
        check(
            "529@0",
            "faults, character 5: calls are numbers from 1 on, such as 3, 2+7 or 3-5, not \"0\"",
        );
        check(
            "529@5-3",
            "faults, character 5: calls are numbers from 1 on, such as 3, 2+7 or 3-5, not \"5-3\"",
        );
        assert!("summary=odd".parse::<Faults>().is_err());
        assert!(
            vec!["500"; RULES_MAX + 1]
                .join(",")
                .parse::<Faults>()
                .is_err()
        );
    }

    #[test]
    fn rules_hit_what_they_count() {
        let faults: Faults = "529@3,summary=empty@2,cut@4".parse().unwrap();
        let strike = |calls, summaries| faults.strike(Counts { calls, summaries }, 1);
        assert_eq!(strike(1, None), None);
        assert_eq!(strike(3, None), Some(Fault::Overloaded));
        assert_eq!(strike(3, Some(2)), Some(Fault::Overloaded));
        assert_eq!(strike(2, Some(1)), None);
        assert_eq!(strike(4, Some(2)), Some(Fault::Summary(BadSummary::Empty)));
        assert_eq!(strike(4, None), Some(Fault::Cut(None)));
    }

    #[test]
    fn chance_is_the_same_for_the_same_seed_and_about_right() {
        let faults: Faults = "529:0.1".parse().unwrap();
        let hits = |seed| {
            (1..=2000)
                .filter(|calls| {
                    let counts = Counts {
                        calls: *calls,
                        summaries: None,
                    };
                    faults.strike(counts, seed).is_some()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(hits(7), hits(7));
        assert_ne!(hits(7), hits(8));
        assert!((150..250).contains(&hits(7).len()));
    }
}
