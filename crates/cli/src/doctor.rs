//! `throughline doctor`: whether everything is in place, and what to do where it is not.
//!
//! [`place`] looks at this machine, [`provider`] at the other side.

mod place;
mod provider;

use serde::Serialize;

use crate::arguments::doctor as arguments;
use crate::config::{self, Config};
use crate::error::{Ending, Failure};
use crate::output::Console;
use crate::runtime;
use crate::terminal;

pub(crate) fn run(arguments: &arguments::Doctor, console: &Console) -> Result<Ending, Failure> {
    let mut findings = Vec::new();
    let config = match configuration() {
        Ok((config, finding)) => {
            findings.push(finding);
            config
        }
        Err(failure) => {
            findings.push(Finding::of_failure("configuration", &failure));
            Config::default()
        }
    };
    findings.extend(place::files(&config));
    runtime::run(async {
        findings.extend(place::sessions(&config).await);
        findings.extend(provider::findings(&arguments.wanted, &config).await);
        Ok(())
    })?;
    findings.push(place::terminal(console));
    tell(&findings, arguments.json, console)
}

fn configuration() -> Result<(Config, Finding), Failure> {
    let place = config::Place::from_environment()?;
    let path = place.path.display();
    let what = match place.text()? {
        Some(_) => format!("{path} can be read"),
        None => format!("there is none; {path} would be it"),
    };
    Ok((Config::read()?, Finding::ok("configuration", what)))
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: &'static str,
    state: State,
    what: String,
    /// What to do.
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warning,
    Failure,
}

impl Finding {
    fn ok(name: &'static str, what: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Ok,
            what: what.into(),
            advice: None,
        }
    }

    fn warning(name: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Warning,
            what: what.into(),
            advice: Some(advice.into()),
        }
    }

    fn failure(name: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Failure,
            ..Self::warning(name, what, advice)
        }
    }

    fn of_failure(name: &'static str, failure: &Failure) -> Self {
        Self {
            name,
            state: State::Failure,
            what: failure.message().to_owned(),
            advice: failure.advice().map(str::to_owned),
        }
    }
}

fn tell(findings: &[Finding], is_json: bool, console: &Console) -> Result<Ending, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        ok: bool,
        findings: &'a [Finding],
    }
    let is_ok = findings
        .iter()
        .all(|finding| finding.state != State::Failure);
    if is_json {
        console.print_json(&Document {
            schema: "throughline.doctor/1",
            ok: is_ok,
            findings,
        })?;
    } else {
        console.print(&text(findings))?;
    }
    Ok(match is_ok {
        true => Ending::Done,
        false => Ending::Invalid,
    })
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let state = match finding.state {
            State::Ok => "ok",
            State::Warning => "look",
            State::Failure => "FAIL",
        };
        text.push_str(&format!("{state:5} {:14} {}\n", finding.name, finding.what));
        if let Some(advice) = &finding.advice {
            text.push_str(&format!("{:20} -> {advice}\n", ""));
        }
    }
    terminal::harmless(&text).into_owned()
}
