//! Numbers of tokens and marks, as people type them.

use throughline::engine::Mark;

/// Above this, a number is a slip of the finger.
pub(crate) const TOKENS_MAX: usize = 100_000_000;

/// No request fits into a smaller window.
pub(crate) const WINDOW_MIN: usize = 1000;

/// Windows from a thousand tokens on.
pub(crate) fn window(text: &str) -> Result<u64, String> {
    match tokens(text) {
        Some(count) if count < WINDOW_MIN => {
            Err(format!("a window has at least {WINDOW_MIN} tokens"))
        }
        Some(count) if count > TOKENS_MAX => Err(format!("more than {TOKENS_MAX} tokens")),
        Some(count) => Ok(count as u64),
        None => Err("give a number of tokens, such as 30000 or 30k".to_owned()),
    }
}

/// The size of a memory: of a few lines at least.
pub(crate) fn memory_tokens(text: &str) -> Result<u64, String> {
    /// Below that there is no room for the user's own words.
    const MEMORY_TOKENS_MIN: usize = 200;
    match tokens(text) {
        Some(count) if count < MEMORY_TOKENS_MIN => {
            Err(format!("a memory has at least {MEMORY_TOKENS_MIN} tokens"))
        }
        Some(count) if count > TOKENS_MAX => Err(format!("more than {TOKENS_MAX} tokens")),
        Some(count) => Ok(count as u64),
        None => Err("give a number of tokens, such as 4000 or 4k".to_owned()),
    }
}

/// `80%` of the usable window, or tokens of context.
pub(crate) fn mark(text: &str) -> Result<Mark, String> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return match tokens(text) {
            Some(0) | None => Err("give a share such as 80%, or a number of tokens".to_owned()),
            Some(count) if count > TOKENS_MAX => Err(format!("more than {TOKENS_MAX} tokens")),
            Some(count) => Ok(Mark::Tokens(count as u64)),
        };
    };
    match percent.trim().parse::<u32>() {
        Ok(percent) if (1..=99).contains(&percent) => Ok(Mark::Permille(percent * 10)),
        _ => Err("a share is from 1% to 99%".to_owned()),
    }
}

/// `4000`, `4_000`, `4,000` and `4k`.
pub(crate) fn tokens(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let digits: String = digits.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(
        digits
            .parse::<usize>()
            .unwrap_or(usize::MAX)
            .saturating_mul(factor),
    )
}
