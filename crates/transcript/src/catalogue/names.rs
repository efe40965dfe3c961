//! Finds the model that a name means.
//!
//! A name is looked up as it is, then with one part after the other taken off, each of them a form that is known to
//! say nothing about which model is meant. What remains has to be a complete name in the catalogue.

use std::collections::HashMap;

use super::{CatalogueError, Model};

/// Vendors that Bedrock writes in front of its models.
const VENDORS: &[&str] = &[
    "anthropic",
    "meta",
    "mistral",
    "openai",
    "deepseek",
    "qwen",
    "google",
    "amazon",
    "moonshot",
];

/// Words that routers write behind a colon for another way of serving the same model.
const ROUTER_VARIANTS: &[&str] = &[
    "free", "beta", "extended", "exacto", "floor", "latest", "nitro", "online", "thinking",
];

/// All names of all models, in lower case.
pub(super) fn index(models: &[Model]) -> Result<HashMap<String, usize>, CatalogueError> {
    let mut names = HashMap::new();
    for (at, model) in models.iter().enumerate() {
        for name in std::iter::once(&model.id).chain(&model.aliases) {
            let name = name.to_ascii_lowercase();
            match names.insert(name.clone(), at) {
                Some(other) if other != at => {
                    return Err(CatalogueError::SameName {
                        name,
                        first: models.get(other).map_or_else(String::new, |m| m.id.clone()),
                        second: model.id.clone(),
                    });
                }
                _ => {}
            }
        }
    }
    Ok(names)
}

/// The index of the model that `model_id` means.
pub(super) fn find(names: &HashMap<String, usize>, model_id: &str) -> Option<usize> {
    let lower = model_id.trim().to_ascii_lowercase();
    let mut name = lower.as_str();
    loop {
        if let Some(at) = names.get(name) {
            return Some(*at);
        }
        if name.starts_with("claude-")
            && let Some(at) = names.get(&with_dashed_version(name))
        {
            return Some(*at);
        }
        name = shorter(name)?;
    }
}

/// The name without its outermost part that does not tell the model; `None` where all that is left does.
fn shorter(name: &str) -> Option<&str> {
    without_variant(name)
        .or_else(|| without_path(name))
        .or_else(|| without_bedrock_vendor(name))
        .or_else(|| without_bedrock_version(name))
        .or_else(|| without_date(name))
        .or_else(|| name.strip_suffix("-latest"))
        .filter(|rest| !rest.is_empty())
}

/// `x[1m]`, `x:free`, `x-v1:0`, `x@20251101`, each without what the sign begins.
///
/// Behind a colon local servers write the size (`x:70b`), which does tell the model: only known words are taken off.
fn without_variant(name: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(rest) = name.strip_suffix(']') {
        let (rest, window) = rest.rsplit_once('[')?;
        let is_window = is_number(window.strip_suffix(['k', 'm'])?);
        return is_window.then_some(rest);
    }
    if let Some((rest, version)) = name.rsplit_once('@') {
        return (is_number(version) || version == "latest").then_some(rest);
    }
    let (rest, variant) = name.rsplit_once(':')?;
    (ROUTER_VARIANTS.contains(&variant) || is_number(variant)).then_some(rest)
}

/// `vendor/x`, `models/x`, `.../inference-profile/x`.
fn without_path(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(_, rest)| rest)
}

/// `anthropic.x`, `us.anthropic.x`.
fn without_bedrock_vendor(name: &str) -> Option<&str> {
    let after_vendor = |name: &str| {
        let (vendor, rest) = name.split_once('.')?;
        VENDORS.contains(&vendor).then_some(rest.len())
    };
    let rest_bytes = after_vendor(name).or_else(|| {
        let (region, rest) = name.split_once('.')?;
        let is_region = (2..=6).contains(&region.len())
            && region.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        if is_region { after_vendor(rest) } else { None }
    })?;
    name.get(name.len() - rest_bytes..)
}

/// `x-v1` (what is left of `x-v1:0`).
fn without_bedrock_version(name: &str) -> Option<&str> {
    let (rest, version) = name.rsplit_once("-v")?;
    let is_version =
        (1..=2).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_digit());
    is_version.then_some(rest)
}

/// `x-20251101`, `x-2025-08-07`.
fn without_date(name: &str) -> Option<&str> {
    let is_year = |digits: &str| digits.len() == 4 && digits.starts_with("20");
    let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    let (rest, last) = name.rsplit_once('-')?;
    if last.len() == 8 && last.starts_with("20") && is_number(last) {
        return Some(rest);
    }
    let (rest, month) = rest.rsplit_once('-')?;
    let (rest, year) = rest.rsplit_once('-')?;
    let is_date = is_year(year)
        && month.len() == 2
        && last.len() == 2
        && [year, month, last].into_iter().all(is_number);
    is_date.then_some(rest)
}

/// `claude-opus-4.5` as `claude-opus-4-5`.
fn with_dashed_version(name: &str) -> String {
    name.replace('.', "-")
}
