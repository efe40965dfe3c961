//! `throughline simulate`: a provider to try programs against, with no key.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use throughline_simulator::{Latency, Options, Recording, SimulatedProvider, serve};
use tokio_util::sync::CancellationToken;

use crate::arguments::{Simulate, SimulatedLatency};
use crate::error::{Ending, Failure, Kind, reason};
use crate::listening::Endings;
use crate::output::Console;
use crate::{listening, model, runtime};

/// The default address.
const USUAL: &str = "127.0.0.1:8484";

pub(crate) fn run(arguments: &Simulate, console: &Console) -> Result<Ending, Failure> {
    let options = options(arguments)?;
    let is_incomplete = Arc::new(AtomicBool::new(false));
    let recording = match &arguments.record {
        Some(path) => Some(recording(path, console, Arc::clone(&is_incomplete))?),
        None => None,
    };
    runtime::run(served(arguments, options, recording, console))?;
    match &arguments.record {
        Some(path) if is_incomplete.load(Ordering::Relaxed) => Err(Failure::new(
            Kind::Output,
            format!("the recording in {} is not complete", path.display()),
        )),
        _ => Ok(Ending::Done),
    }
}

fn options(arguments: &Simulate) -> Result<Options, Failure> {
    let mut options = Options::new(arguments.seed);
    options.catalogue = model::catalogue(arguments.catalogue.as_deref())?;
    options.window = arguments.window;
    options.latency = match arguments.latency {
        SimulatedLatency::Real => Latency::real(),
        SimulatedLatency::None => Latency::none(),
    };
    // The ledger is not used here.
    options.keeps_bodies = false;
    options.faults = arguments.faults.clone();
    Ok(options)
}

/// The recording holds conversations: it is its owner's alone, also if the file was there before.
fn recording(
    path: &Path,
    console: &Console,
    is_incomplete: Arc<AtomicBool>,
) -> Result<Recording, Failure> {
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
    let file = open().map_err(|error: io::Error| Failure::writing(path.display(), &error))?;
    let (console, path) = (console.clone(), path.to_owned());
    Ok(Recording::to(file).on_failure(move |error| {
        is_incomplete.store(true, Ordering::Relaxed);
        console.warning(&format!(
            "cannot write {}: {}; recording stops, answers continue",
            path.display(),
            reason(error)
        ));
    }))
}

async fn served(
    arguments: &Simulate,
    options: Options,
    recording: Option<Recording>,
    console: &Console,
) -> Result<(), Failure> {
    let address = &arguments.listen;
    let (listener, bound) = listening::bind(address, USUAL).await?;
    let shutdown = CancellationToken::new();
    let mut endings = Endings::of(address, USUAL)?;
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
    tokio::select! {
        // It ends only on request.
        () = &mut serving => return Ok(()),
        () = endings.wanted() => {}
    }
    shutdown.cancel();
    serving.await;
    Ok(())
}
