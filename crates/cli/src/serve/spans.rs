//! Spans of the proxy's requests and updates for a collector, over OTLP: ids and numbers, as in the log.
//!
//! Their target and everything else is configured by the variables of the OpenTelemetry specification.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use throughline::providers::transport::{HttpTransport, Transport};
use throughline_proxy::SPANS;
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use crate::error::{Failure, Kind};

/// How long one delivery may take.
const DELIVERY_WAIT: Duration = Duration::from_secs(10);
/// The largest answer of a collector that is read, bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Spans on their way.
pub(super) struct Spans(SdkTracerProvider);

impl Spans {
    /// What is to be sent where, if the environment says so. To be called within a runtime.
    pub(super) fn of_environment() -> Result<Option<Self>, Failure> {
        if !is_wanted(|name| env::var(name).ok()) {
            return Ok(None);
        }
        let cannot = |what: String| {
            Failure::new(Kind::Arguments, format!("no spans can be sent: {what}"))
                .hint("see the variables OTEL_EXPORTER_OTLP_... of OpenTelemetry")
        };
        let transport = HttpTransport::new().map_err(|error| cannot(error.to_string()))?;
        let client = Client {
            transport: Arc::new(transport),
            runtime: Handle::current(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .build()
            .map_err(|error| cannot(error.to_string()))?;
        let resource = Resource::builder();
        let resource = if is_named(|name| env::var(name).ok()) {
            resource
        } else {
            resource.with_service_name("throughline")
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Some(Self(provider)))
    }

    /// What hands the proxy's spans on, and nothing else.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("throughline"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(Targets::new().with_target(SPANS, LevelFilter::INFO))
    }

    /// Sends what is left.
    pub(super) async fn end(self) {
        // It waits for the thread that sends.
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

/// Whether the environment names a place for spans, and does not say that there are to be none.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    let value = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    if value("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return false;
    }
    match value("OTEL_TRACES_EXPORTER").as_deref() {
        Some("otlp") => true,
        Some(_) => false,
        None => {
            value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").is_some()
                || value("OTEL_EXPORTER_OTLP_ENDPOINT").is_some()
        }
    }
}

/// Whether the environment says what the service is called.
fn is_named(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="))
}

/// Requests to the collector go out as all others do.
struct Client {
    transport: Arc<dyn Transport>,
    /// The thread that sends belongs to no runtime.
    runtime: Handle,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let transport = Arc::clone(&self.transport);
        // The time, too, is kept by the runtime.
        let sending = self.runtime.spawn(async move {
            tokio::time::timeout(DELIVERY_WAIT, sent(transport, request)).await
        });
        sending.await??
    }
}

async fn sent(
    transport: Arc<dyn Transport>,
    request: http::Request<Bytes>,
) -> Result<http::Response<Bytes>, HttpError> {
    use throughline::futures::StreamExt as _;
    let (head, mut chunks) = transport.call(request).await?.into_parts();
    let mut body = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("the answer of the collector is too long".into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(http::Response::from_parts(head, body.freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], wanted: bool, named: bool) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(is_wanted(variable), wanted, "{variables:?}");
        assert_eq!(is_named(variable), named, "{variables:?}");
    }

    #[test]
    fn spans_are_sent_where_the_environment_says_so() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        check(&[], false, false);
        check(&[endpoint], true, false);
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], false, false);
        check(
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h/x")],
            true,
            false,
        );
        check(&[("OTEL_TRACES_EXPORTER", "otlp")], true, false);
        check(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")], false, false);
        check(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")], false, false);
        check(&[endpoint, ("OTEL_SERVICE_NAME", "here")], true, true);
        check(
            &[("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=c")],
            false,
            true,
        );
    }
}
