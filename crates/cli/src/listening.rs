//! What commands share that listen on an address of this machine until they are told to end.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Failure, Kind, reason};

/// Listens on `address`, and says where that is: port 0 takes a free one. `usual` is an address that would do.
pub(crate) async fn bind(address: &str, usual: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    bound
        .await
        .map_err(|error| cannot_listen(address, usual, &error))
}

fn cannot_listen(address: &str, usual: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(
        Kind::Arguments,
        format!("cannot listen on {address}: {}", reason(error)),
    );
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.hint("port 0 takes a free one"),
        _ => failure.hint(format!(
            "give an address of this machine and a port, such as {usual}"
        )),
    }
}

/// The signals that end a command. From the start of this on they do nothing else.
pub(crate) struct Endings {
    interrupt: Signal,
    terminate: Signal,
}

impl Endings {
    /// For a command that listens on `address`.
    pub(crate) fn of(address: &str, usual: &str) -> Result<Self, Failure> {
        let taken = || {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        };
        taken().map_err(|error| cannot_listen(address, usual, &error))
    }

    /// Waits until the command is told to end.
    pub(crate) async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn interrupted(&mut self) {
        self.interrupt.recv().await;
    }
}
