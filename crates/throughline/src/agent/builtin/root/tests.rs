use std::fs;

use super::*;

/// A root with a folder beside it that has a secret.
fn beside() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("work");
    fs::create_dir_all(inside.join("src")).unwrap();
    fs::create_dir_all(folder.path().join("beside")).unwrap();
    fs::write(folder.path().join("beside/secret.txt"), "secret").unwrap();
    fs::write(inside.join("src/a.rs"), "fn a() {}\n").unwrap();
    let root = Root::open(inside).unwrap();
    (folder, root)
}

fn read(root: &Root, path: &str) -> Result<Vec<u8>, ToolError> {
    root.read(&root.place(path)?)
}

#[test]
fn paths_inside_are_found_however_they_are_written() {
    let (_folder, root) = beside();
    let absolute = root.path().join("src/a.rs").display().to_string();
    for path in [
        "src/a.rs",
        "./src/a.rs",
        "src/../src/a.rs",
        " src/a.rs ",
        &absolute,
    ] {
        assert_eq!(read(&root, path).unwrap(), b"fn a() {}\n", "{path}");
    }
}

#[test]
fn no_path_leads_out() {
    let (folder, root) = beside();
    let absolute = folder
        .path()
        .join("beside/secret.txt")
        .display()
        .to_string();
    let mut paths = vec![
        "../beside/secret.txt".to_owned(),
        "src/../../beside/secret.txt".to_owned(),
        "/etc/passwd".to_owned(),
        absolute,
        format!("{}/../beside/secret.txt", root.path().display()),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("../beside/secret.txt", root.path().join("file_link")).unwrap();
        symlink("../beside", root.path().join("folder_link")).unwrap();
        symlink(folder.path(), root.path().join("absolute_link")).unwrap();
        symlink("..", root.path().join("src/up")).unwrap();
        symlink("/dev/zero", root.path().join("device")).unwrap();
        for path in [
            "file_link",
            "folder_link/secret.txt",
            "absolute_link/beside/secret.txt",
            "src/up/../beside/secret.txt",
            "device",
        ] {
            paths.push(path.to_owned());
        }
        // A link to a place inside is one.
        symlink("src/a.rs", root.path().join("good_link")).unwrap();
        assert_eq!(read(&root, "good_link").unwrap(), b"fn a() {}\n");
    }
    for path in &paths {
        let refused = read(&root, path).unwrap_err();
        if path != "device" {
            // The model is told from where paths count.
            let from = format!("outside of the folder {}", root.path().display());
            assert!(refused.message().contains(&from), "{path}: {refused:?}");
        }
        let Ok(place) = root.place(path) else {
            continue;
        };
        assert!(
            root.folder().write(&place, "x").is_err(),
            "{path} was written"
        );
        let mut seen = Vec::new();
        let _ = root.walk(&place, None, |path| {
            seen.push(path.to_owned());
            true
        });
        assert!(seen.is_empty(), "{path}: {seen:?}");
    }
    assert!(root.folder().create_dir_all("../new").is_err());
    assert!(!folder.path().join("new").exists());
    let secret = fs::read(folder.path().join("beside/secret.txt")).unwrap();
    assert_eq!(secret, b"secret");
}

#[test]
fn a_walk_is_sorted_and_leaves_out_what_is_ignored_and_where_links_lead() {
    let (_folder, root) = beside();
    let path = root.path();
    fs::create_dir_all(path.join("target/debug")).unwrap();
    fs::create_dir_all(path.join(".git")).unwrap();
    for name in [
        "target/debug/x.rs",
        "b.md",
        ".hidden",
        ".git/config",
        "src/z.rs",
    ] {
        fs::write(path.join(name), name).unwrap();
    }
    fs::write(path.join(".gitignore"), "target\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../beside", path.join("link")).unwrap();
    let walked = |place: &str, glob| {
        let mut paths = Vec::new();
        root.walk(Path::new(place), glob, |path| {
            paths.push(path.display().to_string());
            true
        })
        .unwrap();
        paths
    };
    assert_eq!(
        walked(".", None),
        [".gitignore", ".hidden", "b.md", "src/a.rs", "src/z.rs"]
    );
    assert_eq!(walked(".", Some("*.rs")), ["src/a.rs", "src/z.rs"]);
    assert_eq!(walked(".", Some("src/**/a.*")), ["src/a.rs"]);
    assert_eq!(walked("src", None), ["src/a.rs", "src/z.rs"]);
    assert_eq!(walked("src/a.rs", None), ["src/a.rs"]);
}

#[cfg(unix)]
#[test]
fn what_would_never_end_is_not_read() {
    let (_folder, root) = beside();
    let path = root.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(path).status();
    if made.is_ok_and(|status| status.success()) {
        let error = read(&root, "pipe").unwrap_err();
        assert_eq!(error.message(), "pipe is not a file");
    }
}
