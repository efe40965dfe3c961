//! Values that commands were given and that changed: which one was used last.

use super::Extractor;

/// Options and variables that are followed.
const SETTINGS_MAX: usize = 500;

/// An option of a program, or a variable, with the value that it had last.
pub(super) struct Setting {
    pub(super) message: usize,
    pub(super) value: String,
    /// The value before that, if it was another.
    pub(super) before: Option<String>,
}

impl Extractor<'_> {
    /// Notes the value that a command was run with.
    pub(super) fn note_setting(&mut self, what: String, value: String, message: usize) {
        if let Some(known) = self.settings.get_mut(&what) {
            known.message = message;
            if known.value != value {
                known.before = Some(std::mem::replace(&mut known.value, value));
            }
        } else if self.settings.len() < SETTINGS_MAX {
            let setting = Setting {
                message,
                value,
                before: None,
            };
            self.settings.insert(what, setting);
        }
    }
}
