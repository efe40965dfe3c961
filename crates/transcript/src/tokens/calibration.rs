//! Corrects estimates with the counts that the provider reports.

use crate::usage::ContextSize;

/// Reports that are remembered: the middle one of their ratios counts.
const RATIOS_MAX: usize = 9;

/// Requests below this estimate say more about overheads than about texts, tokens.
const ESTIMATE_MIN: u64 = 500;

/// No tokenizer is further from the estimate than this, in thousandths.
const RATIO_MIN: u64 = 400;

/// See [`RATIO_MIN`].
const RATIO_MAX: u64 = 3_000;

/// How the reported sizes of one model in one session relate to the estimates.
///
/// The ratio is the middle one of the last nine reports, so it is right at once when the estimate is off by a factor,
/// follows a session whose texts change, and is not moved by single reports that are wrong (a server that cut the
/// prompt, a sum over several calls). It stays between 0.4 and 3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calibration {
    /// Reported by estimated size in thousandths, oldest first.
    ratios: Vec<u64>,
}

impl Calibration {
    /// Takes in that a request estimated at `estimated` tokens was reported as `reported` tokens of prompt.
    pub fn observe(&mut self, estimated: u64, reported: u64) {
        if estimated < ESTIMATE_MIN || reported == 0 {
            return;
        }
        let ratio =
            (u128::from(reported) * 1000 + u128::from(estimated) / 2) / u128::from(estimated);
        let ratio = u64::try_from(ratio)
            .unwrap_or(u64::MAX)
            .clamp(RATIO_MIN, RATIO_MAX);
        if self.ratios.len() == RATIOS_MAX {
            self.ratios.remove(0);
        }
        self.ratios.push(ratio);
    }

    /// The estimate, corrected.
    #[must_use]
    pub fn apply(&self, estimated: u64) -> u64 {
        let corrected = (u128::from(estimated) * u128::from(self.ratio_permille())).div_ceil(1000);
        u64::try_from(corrected).unwrap_or(u64::MAX)
    }

    /// What estimates are multiplied with, in thousandths; 1000 before the first report.
    #[must_use]
    pub fn ratio_permille(&self) -> u64 {
        let mut sorted = self.ratios.clone();
        sorted.sort_unstable();
        let middle = sorted.len() / 2;
        match (sorted.get(middle), sorted.get(middle.wrapping_sub(1))) {
            (Some(upper), Some(lower)) if sorted.len().is_multiple_of(2) => {
                (upper + lower).div_ceil(2)
            }
            (Some(middle), _) => *middle,
            (None, _) => 1000,
        }
    }

    /// Number of reports that the ratio is based on, at most nine.
    #[must_use]
    pub fn reports(&self) -> usize {
        self.ratios.len()
    }
}

/// Knows how full the context of a session is.
///
/// Between reports the size is never below the last reported one plus what was added since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextMeter {
    calibration: Calibration,
    last: Option<Report>,
}

/// A reported context size with the estimate of the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    /// What was sent and answered, tokens.
    next: u64,
    /// What was sent, by the uncorrected estimate, tokens.
    estimated: u64,
}

impl ContextMeter {
    /// Begins with a correction that was taught before, in thousandths: [`Calibration::ratio_permille`]. The first
    /// reports take its place.
    #[must_use]
    pub fn corrected_by(ratio_permille: u64) -> Self {
        let ratios = vec![ratio_permille.clamp(RATIO_MIN, RATIO_MAX)];
        Self {
            calibration: Calibration { ratios },
            last: None,
        }
    }

    /// A request estimated at `estimated` tokens was answered with this usage.
    pub fn reported(&mut self, estimated: u64, size: ContextSize) {
        self.calibration.observe(estimated, size.prompt);
        self.last = Some(Report {
            next: size.next,
            estimated,
        });
    }

    /// What was sent is no longer what will be sent: the history was compacted, edited or forked.
    ///
    /// The last report no longer holds; what it taught about the estimate does.
    pub fn history_changed(&mut self) {
        self.last = None;
    }

    /// Tokens of the next request. `estimated` is the uncorrected estimate of the whole of it, `added` that of the
    /// messages after the answer to the last reported request.
    #[must_use]
    pub fn next(&self, estimated: u64, added: u64) -> u64 {
        let whole = self.calibration.apply(estimated);
        match self.last {
            Some(last) => whole.max(last.next.saturating_add(self.calibration.apply(added))),
            None => whole,
        }
    }

    /// Whether the server seems to have read less than it was sent: a local server that cuts the front of a prompt
    /// which is too long for it answers as if nothing had happened.
    #[must_use]
    pub fn seems_cut(estimated: u64, reported: u64) -> bool {
        estimated >= ESTIMATE_MIN && reported > 0 && reported < estimated / 3
    }

    /// The correction that reports have taught.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}
