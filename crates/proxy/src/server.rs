//! The proxy behind a socket.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::proxy::Proxy;
use crate::tls::Tls;

/// How long a client may take for the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// After an error of the listener, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers connections of `listener` until `shutdown` is cancelled. Answers that are under way may finish within
/// `limit`.
pub async fn serve(
    listener: TcpListener,
    proxy: Proxy,
    tls: Option<Tls>,
    shutdown: CancellationToken,
    limit: Duration,
) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                // Small chunks must not wait for the client to acknowledge the ones before.
                let _ = stream.set_nodelay(true);
                let (proxy, shutdown) = (proxy.clone(), shutdown.clone());
                match tls.clone() {
                    None => connections.spawn(connected(stream, proxy, shutdown)),
                    Some(tls) => connections.spawn(encrypted(stream, tls, proxy, shutdown)),
                };
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    let _ = tokio::time::timeout(limit, connections.wait()).await;
    proxy.close(limit).await;
}

async fn encrypted(stream: TcpStream, tls: Tls, proxy: Proxy, shutdown: CancellationToken) {
    match tokio::time::timeout(HEAD_WAIT, tls.0.accept(stream)).await {
        Ok(Ok(stream)) => connected(stream, proxy, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection without TLS, or of another kind"),
        Err(_) => tracing::debug!("a client says nothing"),
    }
}

/// All requests of one connection.
async fn connected<S>(stream: S, proxy: Proxy, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT);
    builder.http2().timer(TokioTimer::new());
    let service = service_fn(move |request: Request<Incoming>| {
        let proxy = proxy.clone();
        async move { Ok::<_, Infallible>(proxy.answer(request).await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // How a connection ends is the client's affair.
        tracing::debug!(%error, "a connection ended");
    }
}
