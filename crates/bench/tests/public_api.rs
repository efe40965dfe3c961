//! The public API of each published library, as listed in `docs/api`.
//!
//! After an intended change, update the lists: `UPDATE_API=1 cargo test -p throughline-bench --test public_api`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Fields, ImplItem, Item, TraitItem, Visibility};

const CRATES: &[&str] = &[
    "transcript",
    "formats",
    "memory",
    "engine",
    "providers",
    "store",
    "throughline",
    "dashboard",
    "proxy",
    "simulator",
];

#[test]
fn public_apis_are_as_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_update = std::env::var_os("UPDATE_API").is_some();
    let mut changed = Vec::new();
    for name in CRATES {
        let list = root.join("docs/api").join(name).with_extension("txt");
        let found = api(&root.join("crates").join(name).join("src"));
        if is_update {
            fs::create_dir_all(list.parent().unwrap()).unwrap();
            fs::write(&list, &found).unwrap();
        } else if let Some(difference) = difference(&fs::read_to_string(&list).unwrap(), &found) {
            changed.push(format!("{name}:\n{difference}"));
        }
    }
    assert!(
        changed.is_empty(),
        "public items have changed; if that is intended: \
         UPDATE_API=1 cargo test -p throughline-bench --test public_api\n{}",
        changed.join("\n")
    );
}

/// The crates whose items are reached through `throughline`.
const REACHED: &[&str] = &[
    "throughline",
    "engine",
    "memory",
    "providers",
    "store",
    "transcript",
];

/// Names that more than one public type has. The list only becomes shorter.
const SHARED_NAMES: &[&str] = &["Change", "Counter", "Finding", "Form", "Place"];

#[test]
fn no_further_name_is_public_twice() {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api");
    let mut names = BTreeSet::new();
    let mut shared = BTreeSet::new();
    for name in REACHED {
        let list = fs::read_to_string(lists.join(name).with_extension("txt")).unwrap();
        for line in list.lines() {
            let Some((_, item)) = line.split_once(": ") else {
                continue;
            };
            let mut words = item.split([' ', '<']);
            let kind = words.next().unwrap();
            if matches!(kind, "struct" | "enum" | "trait" | "type")
                && let Some(name) = words.next()
                && !names.insert(name.to_owned())
            {
                shared.insert(name.to_owned());
            }
        }
    }
    let shared: Vec<&str> = shared.iter().map(String::as_str).collect();
    assert_eq!(shared, SHARED_NAMES);
}

fn difference(listed: &str, found: &str) -> Option<String> {
    let listed: BTreeSet<&str> = listed.lines().collect();
    let found: BTreeSet<&str> = found.lines().collect();
    let lines: Vec<String> = listed
        .difference(&found)
        .map(|line| format!("- {line}"))
        .chain(found.difference(&listed).map(|line| format!("+ {line}")))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// All public items below a folder, one a line. The lint `unreachable_pub` makes sure that what is `pub` can be reached.
fn api(source: &Path) -> String {
    let mut lines = BTreeSet::new();
    for path in files(source) {
        let file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
        let module = path.strip_prefix(source).unwrap().with_extension("");
        list(&file.items, &module.display().to_string(), &mut lines);
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "tests") {
                found.extend(files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_name().is_none_or(|name| name != "tests.rs")
        {
            found.push(path);
        }
    }
    found
}

fn list(items: &[Item], module: &str, lines: &mut BTreeSet<String>) {
    let is_public = |visibility: &Visibility| matches!(visibility, Visibility::Public(_));
    for item in items {
        let mut add = |text: String| lines.insert(format!("{module}: {text}"));
        match item {
            Item::Const(item) if is_public(&item.vis) => {
                add(format!("const {}: {}", item.ident, text(&item.ty)));
            }
            Item::Static(item) if is_public(&item.vis) => {
                add(format!("static {}: {}", item.ident, text(&item.ty)));
            }
            Item::Type(item) if is_public(&item.vis) => {
                add(format!(
                    "type {}{} = {}",
                    item.ident,
                    text(&item.generics),
                    text(&item.ty)
                ));
            }
            Item::Fn(item) if is_public(&item.vis) => {
                add(text(&item.sig));
            }
            Item::Use(item) if is_public(&item.vis) => {
                add(format!("use {}", text(&item.tree)));
            }
            Item::Struct(item) if is_public(&item.vis) => {
                add(format!("struct {}{}", item.ident, text(&item.generics)));
                for (index, field) in item.fields.iter().enumerate() {
                    if is_public(&field.vis) {
                        let name = match &field.ident {
                            Some(name) => name.to_string(),
                            None => index.to_string(),
                        };
                        add(format!("{}.{name}: {}", item.ident, text(&field.ty)));
                    }
                }
            }
            Item::Enum(item) if is_public(&item.vis) => {
                add(format!("enum {}{}", item.ident, text(&item.generics)));
                for variant in &item.variants {
                    let fields = match &variant.fields {
                        Fields::Unit => String::new(),
                        Fields::Named(fields) => {
                            let fields: Vec<String> = fields
                                .named
                                .iter()
                                .map(|field| {
                                    let name = field.ident.as_ref().map(ToString::to_string);
                                    format!("{}: {}", name.unwrap_or_default(), text(&field.ty))
                                })
                                .collect();
                            format!(" {{ {} }}", fields.join(", "))
                        }
                        Fields::Unnamed(fields) => {
                            let fields: Vec<String> =
                                fields.unnamed.iter().map(|field| text(&field.ty)).collect();
                            format!("({})", fields.join(", "))
                        }
                    };
                    add(format!("{}::{}{fields}", item.ident, variant.ident));
                }
            }
            Item::Trait(item) if is_public(&item.vis) => {
                add(format!("trait {}{}", item.ident, text(&item.generics)));
                for member in &item.items {
                    match member {
                        TraitItem::Fn(function) => {
                            add(format!("{}::{}", item.ident, text(&function.sig)));
                        }
                        TraitItem::Type(kind) => {
                            add(format!("{}::type {}", item.ident, kind.ident));
                        }
                        TraitItem::Const(constant) => {
                            add(format!("{}::const {}", item.ident, constant.ident));
                        }
                        _ => {}
                    }
                }
            }
            Item::Impl(item) if item.trait_.is_none() => {
                for member in &item.items {
                    match member {
                        ImplItem::Fn(function) if is_public(&function.vis) => {
                            add(format!("{}::{}", text(&item.self_ty), text(&function.sig)));
                        }
                        ImplItem::Const(constant) if is_public(&constant.vis) => {
                            add(format!("{}::const {}", text(&item.self_ty), constant.ident));
                        }
                        _ => {}
                    }
                }
            }
            Item::Mod(item) if is_public(&item.vis) => {
                add(format!("mod {}", item.ident));
                if let Some((_, items)) = &item.content {
                    list(items, &format!("{module}/{}", item.ident), lines);
                }
            }
            _ => {}
        }
    }
}

/// The source text of a piece of syntax, on one line.
fn text(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
