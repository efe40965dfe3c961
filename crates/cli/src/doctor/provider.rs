//! What `doctor` finds on the other side.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use throughline::providers::models::ModelInfo;
use throughline_transcript::catalogue::Catalogue;

use super::Finding;
use crate::arguments::connection::ConnectionOptions;
use crate::config::Config;
use crate::connect::{self, SIMULATED, Server, local};
use crate::words;

/// Signatures of requests and sums by day go wrong with more.
const CLOCK_OFF_MAX: Duration = Duration::from_secs(120);

pub(super) async fn findings(wanted: &ConnectionOptions, config: &Config) -> Vec<Finding> {
    let catalogue = match connect::catalogue(wanted, config) {
        Ok(catalogue) => catalogue,
        Err(failure) => return vec![Finding::of_failure("models", &failure)],
    };
    let model = wanted.model.as_deref().or(config.model.as_deref());
    if model == Some(SIMULATED) {
        return vec![Finding::ok(
            "model",
            "simulated: it needs no key and no network",
        )];
    }
    let server = match connect::server(wanted, config, &catalogue) {
        Ok(Ok(server)) => server,
        Ok(Err(no_key)) => {
            let failure = local::no_key(no_key.variable, model).await;
            return vec![Finding::of_failure("key", &failure)];
        }
        Err(failure) => return vec![Finding::of_failure("key", &failure)],
    };
    let mut findings = vec![key(&server)];
    let base_url = server.base_url.clone();
    match connect::knock(&base_url).await {
        Err(what) => findings.push(Finding::failure(
            "provider",
            format!("{base_url} does not answer: {what}"),
            "look at the network, at HTTPS_PROXY, and at the address (--base-url, `throughline config`)",
        )),
        Ok(knock) => {
            findings.push(Finding::ok(
                "provider",
                format!("{base_url} answers within {}", words::duration(knock.took)),
            ));
            findings.extend(knock.date.as_deref().and_then(clock));
            findings.extend(models(server, wanted, config, &catalogue).await);
        }
    }
    findings
}

fn key(server: &Server) -> Finding {
    match &server.key_from {
        Some(from) => Finding::ok("key", format!("there is one in {from}")),
        None if connect::is_loopback(&server.base_url) => {
            Finding::ok("key", "none: a server on this machine seldom wants one")
        }
        None => Finding::warning(
            "key",
            format!("none is sent to {}", server.base_url),
            "if the server wants one: `throughline config set credential env:NAME`",
        ),
    }
}

/// The clock against what the provider's `Date` header says.
fn clock(date: &str) -> Option<Finding> {
    let theirs = DateTimeParser::new().parse_timestamp(date).ok()?;
    let ours = jiff::Timestamp::now();
    Some(compared(ours.as_second(), theirs.as_second()))
}

fn compared(ours_s: i64, theirs_s: i64) -> Finding {
    let off = Duration::from_secs(ours_s.abs_diff(theirs_s));
    if off <= CLOCK_OFF_MAX {
        return Finding::ok("clock", "it agrees with the provider's");
    }
    let way = if ours_s > theirs_s {
        "ahead of"
    } else {
        "behind"
    };
    Finding::warning(
        "clock",
        format!(
            "it is {} s {way} the provider's",
            words::number(off.as_secs())
        ),
        "set it: times of sessions are wrong, and connections may be refused",
    )
}

/// The provider's list: whether the key is taken, and whether it has the model.
async fn models(
    server: Server,
    wanted: &ConnectionOptions,
    config: &Config,
    catalogue: &Catalogue,
) -> Vec<Finding> {
    let listed = match connect::list(server, wanted, config).await {
        Ok(listed) => listed,
        Err(failure) => {
            return vec![Finding::failure(
                "models",
                failure.message(),
                "if the key is refused, make a new one; a server without a list of models may still work",
            )];
        }
    };
    let name = match (listed.model.as_str(), listed.models.as_slice()) {
        ("", [only]) => only.id.clone(),
        (name, _) => name.to_owned(),
    };
    let known = catalogue.find(&name);
    let theirs = listed.models.iter().find(|model| {
        model.id == name
            || known.is_some_and(|known| {
                catalogue
                    .find(&model.id)
                    .is_some_and(|found| found.id == known.id)
            })
    });
    let model = match theirs {
        _ if name.is_empty() => Finding::failure(
            "model",
            format!("none is named, and the server has {}", listed.models.len()),
            "`throughline models --provider` lists them; `throughline config set model NAME`",
        ),
        Some(_) => Finding::ok("model", format!("the provider has {name}")),
        None => Finding::failure(
            "model",
            format!("the provider does not list {name}"),
            "`throughline models --provider` lists what it has",
        ),
    };
    let said = wanted.window.or(config.window);
    vec![model, window(said, theirs, known.map(|model| model.window))]
}

fn window(said: Option<u64>, theirs: Option<&ModelInfo>, known: Option<u64>) -> Finding {
    let told = theirs.and_then(|model| model.window);
    let tokens = |count: u64, from: &str| format!("{} tokens, {from}", words::number(count));
    match (said, told, known) {
        (Some(said), Some(told), _) if said > told => Finding::warning(
            "window",
            format!(
                "{}, and the server has {}",
                tokens(said, "as you say"),
                words::number(told)
            ),
            "`throughline config unset window`, or give the server more",
        ),
        (Some(said), _, _) => Finding::ok("window", tokens(said, "as you say")),
        (None, Some(told), _) => Finding::ok("window", tokens(told, "as the server says")),
        (None, None, Some(known)) => {
            Finding::ok("window", tokens(known, "as `throughline models` says"))
        }
        (None, None, None) => Finding::warning(
            "window",
            "the model's window is unknown",
            "`throughline config set window TOKENS`; else a cautious guess is used",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn clocks_may_differ_a_little() {
        assert_eq!(compared(1_000, 1_090).state, State::Ok);
        let finding = compared(1_000, 1_300);
        assert_eq!(finding.state, State::Warning);
        assert_eq!(finding.what, "it is 300 s behind the provider's");
        assert!(clock("Mon, 30 Nov 2026 05:23:16 GMT").is_some());
        assert_eq!(clock("yesterday"), None);
    }

    #[test]
    fn windows_come_from_whoever_knows() {
        let mut server = ModelInfo::default();
        server.window = Some(8_000);
        let check = |said, theirs: Option<&ModelInfo>, known, state, what: &str| {
            let finding = window(said, theirs, known);
            assert_eq!((finding.state, finding.what.as_str()), (state, what));
        };
        check(
            Some(4_000),
            Some(&server),
            None,
            State::Ok,
            "4,000 tokens, as you say",
        );
        check(
            Some(9_000),
            Some(&server),
            None,
            State::Warning,
            "9,000 tokens, as you say, and the server has 8,000",
        );
        check(
            None,
            Some(&server),
            Some(9),
            State::Ok,
            "8,000 tokens, as the server says",
        );
        check(
            None,
            None,
            None,
            State::Warning,
            "the model's window is unknown",
        );
    }
}
