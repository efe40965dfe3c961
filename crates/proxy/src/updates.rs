//! Memories by a model: with whose key, and how much of a rate limit they may use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use throughline::core::Traffic;
use throughline::{Compactor, ModelCompactor};
use throughline_providers::client::Client;
use throughline_providers::rate_limits::RateLimits;
use throughline_providers::transport::Transport;
use throughline_transcript::wire::Wire;
use tokio::time::Instant;

use crate::config::{Config, Operator, Updates};
use crate::headers::{self, Tenant};

/// Tokens that a provider allows within this time are what a limit counts.
const WINDOW: Duration = Duration::from_secs(60);
/// Tenants that are kept in mind.
const TENANTS_MAX: usize = 10_000;

/// What the sessions of a tenant share.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) traffic: Traffic,
    share: Mutex<Share>,
}

#[derive(Debug, Default)]
struct Share {
    /// Tokens a minute, as the provider last said.
    limit: Option<u64>,
    used: u64,
    since: Option<Instant>,
}

impl Account {
    /// Takes in what an answer says of rate limits.
    pub(crate) fn heard(&self, headers: &HeaderMap) {
        let limits = RateLimits::read(headers);
        let limit = limits.input_tokens.limit.or(limits.tokens.limit);
        if limit.is_some() {
            self.share().limit = limit;
        }
    }

    /// How long an update of that many tokens has to wait, so that updates use no more than their share of the limit. It
    /// counts as used from then on.
    pub(crate) fn take(&self, tokens: u64, permille: u32, now: Instant) -> Duration {
        let mut share = self.share();
        let Some(limit) = share.limit else {
            return Duration::ZERO;
        };
        let allowed = limit.saturating_mul(u64::from(permille)) / 1000;
        let since = *share.since.get_or_insert(now);
        let passed = now.saturating_duration_since(since);
        if passed >= WINDOW {
            share.used = 0;
            share.since = Some(now);
        }
        if share.used == 0 || share.used.saturating_add(tokens) <= allowed {
            // What is larger than the share alone goes when nothing else did.
            share.used = share.used.saturating_add(tokens);
            return Duration::ZERO;
        }
        // It is taken out of the window that begins then.
        let wait = WINDOW.saturating_sub(passed.min(WINDOW));
        share.used = tokens;
        share.since = Some(now + wait);
        wait
    }

    fn share(&self) -> std::sync::MutexGuard<'_, Share> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The accounts of all tenants.
#[derive(Debug, Default)]
pub(crate) struct Accounts(Mutex<HashMap<Tenant, Arc<Account>>>);

impl Accounts {
    pub(crate) fn of(&self, tenant: Tenant) -> Arc<Account> {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= TENANTS_MAX && !accounts.contains_key(&tenant) {
            accounts.retain(|_, account| Arc::strong_count(account) > 1);
        }
        Arc::clone(accounts.entry(tenant).or_default())
    }
}

/// Who makes memories for a request of these headers.
pub(crate) fn compactor(
    config: &Config,
    transport: &Arc<dyn Transport>,
    wire: Wire,
    base: &str,
    model: &str,
    headers: &HeaderMap,
) -> Option<Arc<dyn Compactor>> {
    let (client, model) = match &config.updates {
        Updates::Code => return None,
        Updates::Client => {
            let mut builder = Client::builder(wire, base).transport(Arc::clone(transport));
            if let Some((credential, style)) = headers::credential(headers) {
                builder = builder.credential(credential).auth_style(style);
            }
            for (name, value) in headers::of_account(headers) {
                builder = builder.header(name, value);
            }
            (builder.build(), model)
        }
        Updates::Operator(operator) => (of_operator(operator, transport), operator.model.as_str()),
    };
    match client {
        Ok(client) => {
            let compactor =
                ModelCompactor::new(client, model).catalogue(Arc::clone(&config.catalogue));
            Some(Arc::new(compactor))
        }
        Err(error) => {
            tracing::warn!(%error, "no model can be asked for memories");
            None
        }
    }
}

fn of_operator(
    operator: &Operator,
    transport: &Arc<dyn Transport>,
) -> Result<Client, throughline_providers::client::BuildError> {
    let mut builder =
        Client::builder(operator.wire, &operator.base_url).transport(Arc::clone(transport));
    if let Some(credential) = &operator.credential {
        builder = builder.credential(credential.clone());
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn updates_keep_to_their_share() {
        let account = Account::default();
        let start = Instant::now();
        // No limit is known.
        assert_eq!(account.take(1_000_000, 200, start), Duration::ZERO);
        let mut headers = HeaderMap::new();
        let name = "anthropic-ratelimit-input-tokens-limit";
        headers.insert(name, HeaderValue::from_static("100000"));
        account.heard(&headers);
        // 20,000 of 100,000 a minute.
        assert_eq!(account.take(15_000, 200, start), Duration::ZERO);
        assert_eq!(account.take(5_000, 200, start), Duration::ZERO);
        let later = start + Duration::from_secs(20);
        assert_eq!(account.take(5_000, 200, later), Duration::from_secs(40));
        // The next minute is full too.
        let wait = account.take(16_000, 200, start + Duration::from_secs(60));
        assert_eq!(wait, Duration::from_secs(60));
        // One that is larger than the share goes when nothing else does.
        let much_later = start + Duration::from_secs(500);
        assert_eq!(account.take(90_000, 200, much_later), Duration::ZERO);
    }
}
