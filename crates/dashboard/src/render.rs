//! Makes pages from templates.

use std::sync::OnceLock;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode};
use jiff::Timestamp;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use throughline_transcript::text::grouped;

use crate::{chart, text};

/// What every page shows.
pub(crate) struct Frame {
    pub(crate) now_ms: i64,
    pub(crate) can_sign_out: bool,
    /// What was just done.
    pub(crate) done: Option<&'static str>,
}

/// Sends the browser to another page.
pub(crate) fn redirect(place: &str) -> Response<Bytes> {
    let mut answer = text(StatusCode::SEE_OTHER, "text/plain", "");
    if let Ok(place) = HeaderValue::try_from(place) {
        answer.headers_mut().insert(LOCATION, place);
    }
    answer
}

/// A page that explains a problem.
pub(crate) fn problem(
    status: StatusCode,
    title: &str,
    message: &str,
    back: &str,
    frame: &Frame,
) -> Response<Bytes> {
    let mut answer = frame.page("problem.html", context! { title, message, back });
    *answer.status_mut() = status;
    answer
}

impl Frame {
    /// For a browser that is not signed in.
    pub(crate) fn signed_out() -> Self {
        Self {
            now_ms: 0,
            can_sign_out: false,
            done: None,
        }
    }

    pub(crate) fn page(&self, name: &'static str, page: Value) -> Response<Bytes> {
        let frame = context! {
            now_ms => self.now_ms,
            can_sign_out => self.can_sign_out,
            done => self.done,
            version_name => env!("CARGO_PKG_VERSION"),
            ..page
        };
        let rendered = templates()
            .get_template(name)
            .and_then(|template| template.render(frame));
        match rendered {
            Ok(html) => text(StatusCode::OK, "text/html; charset=utf-8", html),
            Err(error) => {
                // The rest of the error may quote a conversation.
                let (kind, line) = (error.kind(), error.line());
                tracing::error!(page = name, %kind, line, "a page cannot be rendered");
                text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "text/plain",
                    "this page cannot be rendered; the log of the proxy has the reason\n",
                )
            }
        }
    }
}

/// The templates. Their names end in `.html`, which turns escaping on.
fn templates() -> &'static Environment<'static> {
    static TEMPLATES: OnceLock<Environment<'static>> = OnceLock::new();
    TEMPLATES.get_or_init(|| {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, source) in [
            ("base.html", include_str!("templates/base.html")),
            ("parts.html", include_str!("templates/parts.html")),
            ("sessions.html", include_str!("templates/sessions.html")),
            ("session.html", include_str!("templates/session.html")),
            ("memory.html", include_str!("templates/memory.html")),
            ("preview.html", include_str!("templates/preview.html")),
            ("edit.html", include_str!("templates/edit.html")),
            ("messages.html", include_str!("templates/messages.html")),
            ("message.html", include_str!("templates/message.html")),
            ("search.html", include_str!("templates/search.html")),
            ("sign-in.html", include_str!("templates/sign-in.html")),
            ("problem.html", include_str!("templates/problem.html")),
        ] {
            if let Err(error) = templates.add_template(name, source) {
                tracing::error!(%error, "a template is broken");
            }
        }
        templates.add_filter("short", chart::short);
        templates.add_filter("grouped", grouped);
        templates.add_filter("dollars", chart::dollars);
        templates.add_filter("ago", ago);
        templates.add_filter("utc", utc);
        templates.add_filter("words", |name: &str| name.replace('_', " "));
        templates
    })
}

/// A view as a value for templates.
pub(crate) fn template_value<T: serde::Serialize>(view: &T) -> Value {
    Value::from(minijinja::value::Serde(view))
}

fn ago(at_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(at_ms).max(0) / 1000;
    match seconds {
        0..5 => "now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn utc(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(
        |_| String::new(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read() {
        let count = templates().templates().count();
        assert_eq!(count, 12);
    }

    #[test]
    fn times_are_words() {
        for (seconds, words) in [
            (0, "now"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (7_200, "2 h ago"),
            (200_000, "2 days ago"),
        ] {
            assert_eq!(ago(0, seconds * 1000), words);
        }
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
    }
}
