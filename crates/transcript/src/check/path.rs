//! A path into a body, kept as a chain on the stack: the text is only made for a finding.

use std::fmt;

/// A place in a body.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The body itself.
    Root,
    /// A field.
    Key(&'a Path<'a>, &'a str),
    /// An element of an array.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut at = *self;
        loop {
            steps.push(at);
            match at {
                Path::Root => break,
                Path::Key(parent, _) | Path::Index(parent, _) => at = *parent,
            }
        }
        let mut is_first = true;
        for step in steps.into_iter().rev() {
            match step {
                Path::Root => {}
                Path::Key(_, key) => write_key(f, key, &mut is_first)?,
                Path::Index(_, index) => write_index(f, index, &mut is_first)?,
            }
        }
        Ok(())
    }
}

/// Appends one field name: bare where it looks like a name, quoted otherwise.
pub(crate) fn write_key(out: &mut impl fmt::Write, key: &str, is_first: &mut bool) -> fmt::Result {
    let is_plain = !key.is_empty()
        && key.len() <= KEY_BYTES_SHOWN
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$'));
    if is_plain {
        if !*is_first {
            out.write_char('.')?;
        }
        out.write_str(key)?;
    } else {
        let shown: String = key.chars().take(KEY_BYTES_SHOWN).collect();
        write!(out, "[{shown:?}]")?;
    }
    *is_first = false;
    Ok(())
}

/// Appends one array index.
pub(crate) fn write_index(
    out: &mut impl fmt::Write,
    index: usize,
    is_first: &mut bool,
) -> fmt::Result {
    *is_first = false;
    write!(out, "[{index}]")
}

/// A field name can be as long as the body; a path shows only its start.
const KEY_BYTES_SHOWN: usize = 80;
