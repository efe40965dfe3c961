//! Whether a server answers at all.

use std::time::{Duration, Instant};

use bytes::Bytes;
use throughline::providers::transport::{HttpTransport, Transport};

use super::is_loopback;

/// How long an address may take to answer.
const WAIT: Duration = Duration::from_secs(5);

/// An answer, whatever it was.
pub(crate) struct Knock {
    pub(crate) took: Duration,
    /// The `Date` header.
    pub(crate) date: Option<String>,
}

/// Asks for the address itself, without a key. Any answer is one.
pub(crate) async fn knock(base_url: &str) -> Result<Knock, String> {
    let builder = HttpTransport::builder();
    let builder = match is_loopback(base_url) {
        true => builder.without_proxy(),
        false => builder,
    };
    let transport = builder.build().map_err(|error| error.to_string())?;
    let request = http::Request::get(base_url)
        .body(Bytes::new())
        .map_err(|error| error.to_string())?;
    let started_at = Instant::now();
    let answer = tokio::time::timeout(WAIT, transport.call(request)).await;
    let response = match answer {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("nothing came within {} s", WAIT.as_secs())),
    };
    let date = response.headers().get(http::header::DATE);
    Ok(Knock {
        took: started_at.elapsed(),
        date: date.and_then(|date| date.to_str().ok()).map(str::to_owned),
    })
}
