//! `throughline run`: a proxy for one program.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::process::ExitStatus;

use throughline_proxy::config::Tenants;
use throughline_proxy::{Config, Report};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{END_WAIT, apply, with_proxy};
use crate::arguments::serve::{Proxying, Run};
use crate::error::{Ending, Failure, Kind, reason};
use crate::output::Console;
use crate::{runtime, words};

pub(crate) fn run(arguments: &Run, console: &Console) -> Result<Ending, Failure> {
    let mut config = Config {
        // One person's: a token may be renewed in the middle of a conversation.
        tenants: Tenants::One,
        ..Config::default()
    };
    apply(&of_environment(&arguments.proxying), &mut config)?;
    let (status, report) = runtime::run(ran(arguments, config))?;
    if !arguments.quiet {
        for line in summary(&report) {
            console.note(&line);
        }
    }
    Ok(Ending::Code(code(status)))
}

/// Where requests would go without the proxy.
fn of_environment(proxying: &Proxying) -> Proxying {
    let of = |typed: &Option<String>, name: &str| {
        typed
            .clone()
            .or_else(|| env::var(name).ok().filter(|url| !url.trim().is_empty()))
    };
    Proxying {
        anthropic_upstream: of(&proxying.anthropic_upstream, "ANTHROPIC_BASE_URL"),
        openai_upstream: of(&proxying.openai_upstream, "OPENAI_BASE_URL"),
        ..proxying.clone()
    }
}

async fn ran(arguments: &Run, config: Config) -> Result<(ExitStatus, Report), Failure> {
    // Ctrl-C is the program's: listening for it here keeps it from ending the proxy.
    let _interrupts = signal(SignalKind::interrupt());
    let cannot = |error: io::Error| {
        Failure::new(
            Kind::Unavailable,
            format!("cannot listen on this machine: {}", reason(&error)),
        )
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(cannot)?;
    let bound = listener.local_addr().map_err(cannot)?;
    let data = arguments.data.as_deref();
    with_proxy(config, data, async |proxy| {
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(throughline_proxy::serve(
            listener,
            proxy.clone(),
            None,
            shutdown.clone(),
            END_WAIT,
        ));
        let status = program(arguments, bound).await;
        let report = proxy.report();
        shutdown.cancel();
        // What was under way was the program's, which has ended.
        let _ = serving.await;
        Ok((status?, report))
    })
    .await
}

/// Runs the program to its end.
async fn program(arguments: &Run, bound: SocketAddr) -> Result<ExitStatus, Failure> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::new(Kind::Arguments, "no program is named"));
    };
    let cannot = |what: &str, error: &io::Error| {
        Failure::new(
            Kind::Arguments,
            format!("{what} {}: {}", program.display(), reason(error)),
        )
    };
    let mut child = Command::new(program)
        .args(rest)
        .env("ANTHROPIC_BASE_URL", format!("http://{bound}"))
        .env("ANTHROPIC_API_BASE", format!("http://{bound}"))
        .env("OPENAI_BASE_URL", format!("http://{bound}/v1"))
        .env("OPENAI_API_BASE", format!("http://{bound}/v1"))
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            cannot("cannot run", &error).hint("put the program and its arguments after `--`")
        })?;
    child
        .wait()
        .await
        .map_err(|error| cannot("cannot wait for", &error))
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        // As shells tell it.
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code).unwrap_or(1)
}

/// What was saved, in a line or two.
fn summary(report: &Report) -> Vec<String> {
    if report.requests == 0 {
        return vec!["the proxy received no request".to_owned()];
    }
    let mut lines = vec![format!(
        "{}, {} of them with a memory instead of old messages; {}, {} tokens left out",
        words::counted(report.requests as usize, "request"),
        report.rewritten,
        words::counted(report.swaps as usize, "swap"),
        words::number(report.saved_tokens),
    )];
    let spent = report.main + report.updates;
    if spent.nano_dollars() > 0 {
        lines.push(format!(
            "about {spent} by list prices, {} of it for memories; about {} with nothing left out, while it fits the window",
            report.updates, report.without
        ));
    }
    lines
}
