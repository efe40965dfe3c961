//! What the proxy answers by itself, whoever the providers are.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response, StatusCode, request};

use crate::Proxy;
use crate::body::Body;

impl Proxy {
    /// The answer to a request that is for the proxy.
    pub(crate) fn own(&self, head: &request::Parts) -> Option<Response<Body>> {
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        match head.uri.path() {
            "/healthz" => Some(text(StatusCode::OK, "text/plain", "ok\n")),
            "/readyz" => {
                let is_ready = !self.shared.stop.is_cancelled();
                let status = if is_ready {
                    StatusCode::OK
                } else {
                    StatusCode::SERVICE_UNAVAILABLE
                };
                Some(text(
                    status,
                    "text/plain",
                    if is_ready { "ready\n" } else { "ending\n" },
                ))
            }
            "/metrics" => Some(text(
                StatusCode::OK,
                "text/plain; version=0.0.4",
                self.metrics(),
            )),
            _ => None,
        }
    }
}

fn text(status: StatusCode, kind: &'static str, text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
