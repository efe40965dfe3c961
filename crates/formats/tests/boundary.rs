//! A live session does not carry the readers of other programs' files.

use std::path::Path;

/// The only crates that depend on this one outside of tests: the program and the measurements.
const DEPENDENTS: [&str; 2] = ["bench", "cli"];

#[expect(
    clippy::disallowed_methods,
    reason = "the manifests are the thing under test"
)]
#[test]
fn only_the_program_and_the_bench_depend_on_session_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut dependents = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let is_for_tests = section.contains("dev-dependencies") || section == "[package]";
            if line.contains("throughline-formats") && !is_for_tests {
                dependents.push(folder.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    dependents.sort_unstable();
    assert_eq!(dependents, DEPENDENTS);
}
