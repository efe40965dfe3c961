//! `throughline simulate`: a provider to try programs against, with no key.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use throughline_simulator::{Latency, Options, Recording, ServeError, SimulatedProvider, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::arguments::{Simulate, SimulatedLatency};
use crate::error::{Ending, Failure, Kind, reason};
use crate::model;
use crate::output::Console;

pub(crate) fn run(arguments: &Simulate, console: &Console) -> Result<Ending, Failure> {
    let options = options(arguments)?;
    let recording = match &arguments.record {
        Some(path) => Some(recording(path)?),
        None => None,
    };
    let runtime = Runtime::new().map_err(|error| {
        Failure::new(
            Kind::Input,
            format!("cannot start threads: {}", reason(&error)),
        )
    })?;
    runtime.block_on(served(arguments, options, recording, console))
}

fn options(arguments: &Simulate) -> Result<Options, Failure> {
    let mut options = Options::new(arguments.seed);
    options.catalogue = model::catalogue(arguments.catalogue.as_deref())?;
    options.window = arguments.window;
    options.latency = match arguments.latency {
        SimulatedLatency::Real => Latency::real(),
        SimulatedLatency::None => Latency::none(),
    };
    // Nobody looks at the ledger here.
    options.keeps_bodies = false;
    options.faults = arguments.faults.clone();
    Ok(options)
}

/// The recording holds conversations: it is its owner's alone, also if the file was there before.
fn recording(path: &Path) -> Result<Recording, Failure> {
    let open = || {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(0o600)
            .open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        if metadata.is_file() && metadata.len() > 0 {
            // A line that was left unfinished must not swallow the first of ours.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(file)
    };
    open()
        .map(Recording::to)
        .map_err(|error: io::Error| Failure::writing(path.display(), &error))
}

async fn served(
    arguments: &Simulate,
    options: Options,
    recording: Option<Recording>,
    console: &Console,
) -> Result<Ending, Failure> {
    let address = &arguments.listen;
    let cannot_listen = |error: &io::Error| {
        let failure = Failure::new(
            Kind::Arguments,
            format!("cannot listen on {address}: {}", reason(error)),
        );
        match error.kind() {
            io::ErrorKind::AddrInUse => failure.hint("port 0 takes a free one"),
            _ => failure.hint("give an address of this machine and a port, such as 127.0.0.1:8484"),
        }
    };
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| cannot_listen(&error))?;
    let bound = listener
        .local_addr()
        .map_err(|error| cannot_listen(&error))?;
    let shutdown = CancellationToken::new();
    let [mut interrupt, mut terminate] = match [
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ] {
        [Ok(interrupt), Ok(terminate)] => [interrupt, terminate],
        [Err(error), _] | [_, Err(error)] => return Err(cannot_listen(&error)),
    };
    console.print(&format!(
        "listening on http://{bound} (ANTHROPIC_BASE_URL=http://{bound} OPENAI_BASE_URL=http://{bound}/v1, any key)\n"
    ))?;
    let serving = serve(
        listener,
        SimulatedProvider::new(options),
        recording,
        shutdown.clone(),
    );
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        _ = async { tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} } } => {
            shutdown.cancel();
            serving.await
        }
    };
    match ended {
        Ok(()) => Ok(Ending::Done),
        Err(ServeError::Record(error)) => Err(match &arguments.record {
            Some(path) => Failure::writing(path.display(), &error),
            None => Failure::new(Kind::Output, reason(&error)),
        }),
        Err(error) => Err(Failure::new(Kind::Bug, error.to_string())),
    }
}
