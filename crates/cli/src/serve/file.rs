//! The file of `throughline serve --config`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use throughline_proxy::Config;
use throughline_proxy::config::{Mode, Route, Tenants};
use throughline_transcript::check::Profile;

use crate::error::{Failure, Kind};
use crate::tokens::WINDOW_MIN;
use crate::{files, model};

/// What can stand in it. Everything may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    anthropic_upstream: Option<String>,
    openai_upstream: Option<String>,
    strict_alternation: Option<bool>,
    mode: Option<String>,
    window: Option<u64>,
    updates: Option<String>,
    one_tenant: Option<bool>,
    catalogue: Option<PathBuf>,
    memory_tokens: Option<u64>,
    #[serde(default)]
    routes: Vec<RouteSettings>,
    #[serde(default)]
    limits: LimitSettings,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteSettings {
    path: String,
    upstream: String,
    #[serde(default)]
    strict_alternation: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitSettings {
    body_bytes: Option<usize>,
    answer_bytes: Option<usize>,
    requests: Option<usize>,
    sessions_in_memory: Option<usize>,
    kept_bytes: Option<u64>,
    unstored_bytes: Option<usize>,
    update_percent: Option<u32>,
}

/// Reads it.
pub(super) fn read(path: &Path) -> Result<Settings, Failure> {
    let text = files::small_file(path)?;
    toml_edit::de::from_str(&text).map_err(|error| {
        let place = error.span().map(|span| {
            text.get(..span.start)
                .unwrap_or_default()
                .lines()
                .count()
                .max(1)
        });
        let place = place.map_or_else(
            || path.display().to_string(),
            |line| format!("{}, line {line}", path.display()),
        );
        Failure::new(Kind::Arguments, error.message().to_owned())
            .at(place)
            .hint("docs/proxy.md lists what can stand there")
    })
}

impl Settings {
    pub(super) fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        if let Some(url) = &self.anthropic_upstream {
            config.upstreams.anthropic = super::address("anthropic_upstream", url)?;
        }
        if let Some(url) = &self.openai_upstream {
            config.upstreams.openai = super::address("openai_upstream", url)?;
        }
        if let Some(is_strict) = self.strict_alternation {
            config.upstreams.openai_profile = profile(is_strict);
        }
        for route in &self.routes {
            if !route.path.starts_with('/') || route.path.starts_with("/v1") {
                return Err(Failure::new(
                    Kind::Arguments,
                    format!("the path {:?} of a route", route.path),
                )
                .hint("a path begins with /, and not with /v1"));
            }
            config.upstreams.routes.push(Route {
                prefix: route.path.clone(),
                upstream: super::address("routes", &route.upstream)?,
                profile: profile(route.strict_alternation),
            });
        }
        if let Some(mode) = &self.mode {
            config.mode = [Mode::Rewrite, Mode::Observe, Mode::Off]
                .into_iter()
                .find(|known| known.name() == mode)
                .ok_or_else(|| {
                    Failure::new(Kind::Arguments, format!("there is no mode {mode:?}"))
                        .hint("rewrite, observe or off")
                })?;
        }
        if let Some(path) = &self.catalogue {
            config.catalogue = Arc::new(model::catalogue(Some(path))?);
        }
        if let Some(window) = self.window {
            if window < WINDOW_MIN as u64 {
                return Err(
                    Failure::new(Kind::Arguments, format!("a window of {window} tokens"))
                        .hint(format!("a window has at least {WINDOW_MIN} tokens")),
                );
            }
            config.window = Some(window);
        }
        config.memory_tokens_max = self.memory_tokens.or(config.memory_tokens_max);
        if self.one_tenant == Some(true) {
            config.tenants = Tenants::One;
        }
        let limits = &mut config.limits;
        let set = |to: &mut usize, value: Option<usize>| *to = value.unwrap_or(*to).max(1);
        set(&mut limits.body_bytes_max, self.limits.body_bytes);
        set(&mut limits.answer_bytes_max, self.limits.answer_bytes);
        set(&mut limits.requests_max, self.limits.requests);
        set(&mut limits.sessions_max, self.limits.sessions_in_memory);
        limits.kept_bytes_max = self.limits.kept_bytes.unwrap_or(limits.kept_bytes_max);
        set(&mut limits.unstored_bytes_max, self.limits.unstored_bytes);
        if let Some(percent) = self.limits.update_percent {
            limits.update_permille = percent.min(100) * 10;
        }
        if let Some(who) = &self.updates {
            config.updates = super::updates(who, config)?;
        }
        Ok(())
    }
}

fn profile(is_strict: bool) -> Profile {
    if is_strict {
        Profile::StrictAlternation
    } else {
        Profile::Provider
    }
}
