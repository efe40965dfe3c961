//! The code map of the program: its modules import each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Each module at the root of the crate, with the modules that its files import.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut imports = BTreeMap::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "tests.rs") {
                let place = path.strip_prefix(&source).unwrap().with_extension("");
                let module = place.iter().next().unwrap().to_str().unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                let product = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
                imports
                    .entry(module.to_owned())
                    .or_insert_with(BTreeSet::new)
                    .extend(imported(product).filter(|other| other != module));
            }
        }
    }
    imports
}

/// The modules that a text names as `crate::module` or `crate::{module, ..}`.
fn imported(text: &str) -> impl Iterator<Item = String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .flat_map(move |rest| {
            let names = match rest.strip_prefix('{') {
                Some(group) => group.split('}').next().unwrap_or_default().split(','),
                None => rest
                    .split(|c: char| !is_name(c))
                    .next()
                    .unwrap_or_default()
                    .split(','),
            };
            names.map(move |name| name.trim().split("::").next().unwrap_or_default())
        })
        .filter(move |name| !name.is_empty() && name.chars().all(is_name))
        .map(str::to_owned)
}

#[test]
fn modules_form_no_circle() {
    let mut left = imports();
    assert!(
        left["chat"].contains("output") && left["serve"].len() > 3,
        "{left:?}"
    );
    left.remove("main");
    // A module that imports none of the others cannot be part of a circle.
    while let Some(leaf) = left
        .iter()
        .find(|(_, others)| others.iter().all(|other| !left.contains_key(other)))
        .map(|(module, _)| module.clone())
    {
        left.remove(&leaf);
    }
    assert!(
        left.is_empty(),
        "these modules import each other: {left:#?}"
    );
}
