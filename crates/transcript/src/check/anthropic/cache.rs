//! Cache markers: how many, where, and in which order of lifetimes.
//!
//! Markers are seen in the order in which the provider renders the request: tools, system, messages.

use crate::json::Raw;

use super::super::checker::{Checker, Object};
use super::super::path::Path;
use super::super::rule;

/// Most markers in one request, the automatic one included.
const MARKERS_MAX: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    Minutes5,
    Hour,
}

/// The markers seen so far.
#[derive(Default)]
pub(crate) struct Markers {
    count: usize,
    has_short: bool,
    /// The marker of the last block that can have one.
    last: Option<Lifetime>,
    has_cacheable: bool,
}

impl Markers {
    /// Sees a block that can be marked, and its marker if it has one.
    pub(crate) fn cacheable(&mut self, block: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
        self.has_cacheable = true;
        self.last = self.marker(block, path, checker);
    }

    /// Sees text that can be marked by the automatic marker only.
    pub(crate) fn unmarked(&mut self) {
        self.has_cacheable = true;
        self.last = None;
    }

    /// Counts the marker of a block at any depth.
    pub(crate) fn count(&mut self, block: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
        self.marker(block, path, checker);
    }

    fn marker(
        &mut self,
        block: &Object,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) -> Option<Lifetime> {
        let value = block.present("cache_control")?;
        let path = path.key("cache_control");
        let lifetime = lifetime(value, &path, checker)?;
        self.count += 1;
        if self.count > MARKERS_MAX {
            checker.add(
                &rule::TOO_MANY_MARKERS,
                path,
                format_args!(
                    "this is cache marker {}, a request may have {MARKERS_MAX}: remove the oldest ones in the messages",
                    self.count
                ),
            );
        }
        self.order(lifetime, path, checker);
        Some(lifetime)
    }

    fn order(&mut self, lifetime: Lifetime, path: Path<'_>, checker: &mut Checker<'_>) {
        match lifetime {
            Lifetime::Minutes5 => self.has_short = true,
            Lifetime::Hour if self.has_short => checker.add(
                &rule::MARKER_ORDER,
                path,
                "a 1h cache marker follows a 5m one (a bare marker is 5m) in the order tools, system, messages: make the earlier ones 1h or this one 5m",
            ),
            Lifetime::Hour => {}
        }
    }

    /// Checks the automatic marker, which applies to the last block that can have one.
    pub(crate) fn finish(&mut self, body: &Object, checker: &mut Checker<'_>) {
        let Some(value) = body.present("cache_control") else {
            return;
        };
        let root = Path::Root;
        let path = root.key("cache_control");
        let Some(lifetime) = lifetime(value, &path, checker) else {
            return;
        };
        match self.last {
            // The last block says the same already: nothing is added.
            Some(last) if last == lifetime => {}
            Some(_) => checker.add(
                &rule::MARKER_AUTOMATIC,
                path,
                "the automatic marker and the last block's own have different lifetimes: make them the same or remove one",
            ),
            None if self.has_cacheable => {
                if self.count >= MARKERS_MAX {
                    checker.add(
                        &rule::TOO_MANY_MARKERS,
                        path,
                        format_args!(
                            "the automatic marker takes one of {MARKERS_MAX} places and {} blocks are marked already: remove one",
                            self.count
                        ),
                    );
                }
                self.order(lifetime, path, checker);
            }
            None => {}
        }
    }
}

fn lifetime(value: &Raw, path: &Path<'_>, checker: &mut Checker<'_>) -> Option<Lifetime> {
    let marker = checker.object(value, *path)?;
    let is_ephemeral = marker.string("type").as_deref() == Some("ephemeral");
    let lifetime = match marker.present("ttl") {
        None => Some(Lifetime::Minutes5),
        Some(ttl) => match ttl
            .as_text()
            .map(|ttl| ttl.decode().into_owned())
            .as_deref()
        {
            Some("5m") => Some(Lifetime::Minutes5),
            Some("1h") => Some(Lifetime::Hour),
            _ => None,
        },
    };
    if !is_ephemeral || lifetime.is_none() {
        checker.add(
            &rule::MARKER_MALFORMED,
            *path,
            "a cache marker is {\"type\": \"ephemeral\"}, with \"ttl\" \"5m\" or \"1h\" if it has one",
        );
    }
    lifetime
}
