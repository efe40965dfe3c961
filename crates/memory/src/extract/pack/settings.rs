//! The last values of options and variables that changed.

use std::cmp::Reverse;

use super::Packer;
use crate::document::{Entry, Origin, Provenance};

impl Packer<'_> {
    pub(super) fn settings(&mut self) {
        const MOST: usize = 8;
        let mut share = self.share(3);
        let settings = &self.extractor.settings;
        let mut changed: Vec<_> = settings
            .iter()
            .filter_map(|(what, setting)| Some((what, setting, setting.before.as_ref()?)))
            .collect();
        changed.sort_by_key(|(what, setting, _)| (Reverse(setting.message), *what));
        for (what, setting, before) in changed.into_iter().take(MOST) {
            let text = format!(
                "Last value used: {what} = {} (before: {before})",
                setting.value
            );
            let provenance = Provenance {
                message: setting.message,
                at_ms: None,
            };
            self.add(
                Entry::Reference { text },
                Origin::Code,
                provenance,
                &mut share,
            );
        }
    }
}
