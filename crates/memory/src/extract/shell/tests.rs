use super::*;

#[track_caller]
fn check(command: &str, expected: &[&str]) {
    check_in(None, command, expected);
}

/// The deeds as they are shown: `+` created, `~` changed, `-` deleted, `>` moved away.
#[track_caller]
fn check_in(folder: Option<&str>, command: &str, expected: &[&str]) {
    let files = read(command, folder);
    let files: Vec<String> = files
        .iter()
        .map(|(path, file_use)| {
            let sign = match file_use {
                FileUse::Created => '+',
                FileUse::Changed => '~',
                FileUse::Deleted => '-',
                FileUse::Moved => '>',
                FileUse::Read => '?',
            };
            format!("{sign}{path}")
        })
        .collect();
    assert_eq!(files, expected, "{command}");
}

#[test]
fn redirections_are_no_operands() {
    check("touch buoy.txt 2>/dev/null", &["+buoy.txt"]);
    check("cp buoy.txt lamp.txt 2>/dev/null", &["+lamp.txt"]);
    check(
        "mv lamp.txt fog.txt 2>/dev/null; ls",
        &[">lamp.txt", "+fog.txt"],
    );
    check("rm -rf dist >/dev/null 2>&1", &["-dist"]);
    check("rm old.log &>/dev/null", &["-old.log"]);
    check("rm old.log &>> /dev/null", &["-old.log"]);
    check("rm old.log >& /dev/null", &["-old.log"]);
    check("rm 2> /dev/null old.log", &["-old.log"]);
    check("tee horn.log >/dev/null <<< hi", &["~horn.log"]);
    check(
        "git rm -r --cached __pycache__ >/dev/null && echo ok",
        &["-__pycache__"],
    );
    check(
        "git mv pier.py quay.py &> /dev/null",
        &[">pier.py", "+quay.py"],
    );
    check("git rm old.py 2>&1 | tail -1", &["-old.py"]);
    check("cat > new.py 2>/dev/null <<EOF\nrm x.py\nEOF", &["~new.py"]);
    check("make >| build.log 2>&1 < in.txt", &["~build.log"]);
    check("diff <(sort a) <(sort b) > delta.txt", &["~delta.txt"]);
    check("exec 3>&1 4>&- 5<>sock", &[]);
    check("ls >&2; echo x 1>out.txt", &["~out.txt"]);
    check("cmd > >(tee log.txt) 2>&1", &[]);
    check("cargo test > /tmp/out.log 2>&1", &[]);
    check("echo hi >> notes/day.md", &["~notes/day.md"]);
}

#[test]
fn targets_of_programs() {
    check("mkdir -p docs/tides d", &["+docs/tides", "+d"]);
    check("mkdir -m 755 kiln", &["+kiln"]);
    check(
        "install -m 644 quay.conf etc/quay.conf",
        &["+etc/quay.conf"],
    );
    check("install -d -m 755 var/quay", &["+var/quay"]);
    check("ln -s ../shared/tide.toml tide.toml", &["+tide.toml"]);
    check("ln -sf /opt/quay/bin/quay .", &["+quay"]);
    check("sed -i 's/a/b/' quay.rs pier.rs", &["~quay.rs", "~pier.rs"]);
    check("sed -i '' 's/a/b/' quay.rs", &["~quay.rs"]);
    check("sed -i.bak -e 's/a/b/' -e 's/c/d/' quay.rs", &["~quay.rs"]);
    check("sed -E -i \"s/x y/z/g\" 'my quay.rs'", &["~my quay.rs"]);
    check("sed -n '1,20p' quay.rs", &[]);
    check("perl -pi -e 's/a/b/' quay.rs", &["~quay.rs"]);
    check("perl -ne 'print' quay.rs", &[]);
    check("dd if=/dev/zero of=disk.img bs=1M count=4", &["+disk.img"]);
    check("dd if=disk.img of=/dev/sdb", &[]);
    check(
        "curl -sSLo tides.json https://tides.example/v1",
        &["+tides.json"],
    );
    check("curl -o /dev/null https://tides.example", &[]);
    check(
        "curl https://tides.example --output 'high tide.json'",
        &["+high tide.json"],
    );
    check("wget -qO tides.csv https://tides.example", &["+tides.csv"]);
    check("wget -O- https://tides.example", &[]);
    check(
        "rsync -av --delete dist/ lea@quay.example:/srv/www",
        &["~lea@quay.example:/srv/www"],
    );
    check("rsync -n -av dist/ www/", &[]);
    check("patch pier.c < fix.diff", &["~pier.c"]);
    check("patch -p1 < fix.diff", &[]);
    check("tar -czf tides.tgz tides", &["+tides.tgz"]);
    check("truncate -s 0 horn.log", &["~horn.log"]);
    check("git checkout -- pier.c", &["~pier.c"]);
    check("git commit -m 'rm pier.c > x'", &[]);
    check("cp -r assets www/", &["+www/assets"]);
    check("cp a.txt b.txt docs/", &["+docs/a.txt", "+docs/b.txt"]);
    check("cp a.txt docs", &["~docs"]);
    check(
        "mv -t attic a.txt b.txt",
        &[">a.txt", ">b.txt", "+attic/a.txt", "+attic/b.txt"],
    );
    check("mv -- -odd.txt even.txt", &[">-odd.txt", "+even.txt"]);
    check("tee -a horn.log fog.log", &["~horn.log", "~fog.log"]);
    check(
        "echo 'set -e' | sudo tee /etc/quay.conf > /dev/null",
        &["~/etc/quay.conf"],
    );
}

#[test]
fn names_that_are_not_known_are_left_out() {
    check("rm $OUT \"$DIR/x.txt\" ${A}.txt `which x` $(mktemp)", &[]);
    check("rm *.pyc build/[ab].o", &[]);
    check("echo hi > \"$OUT\"", &[]);
    check("cp pier.c \"$DEST\"", &[]);
    check("mv *.txt docs/", &[]);
    check("find . -name '*.o' | xargs rm -f", &[]);
    check("find . -name '*.o' -exec rm {} \\;", &[]);
    check("for f in *.txt; do mv \"$f\" \"$f.bak\"; done", &[]);
    check("cd \"$ROOT\" && rm pier.c", &[]);
    check(
        "touch {high,low}.tide src/{a,b}.c",
        &["+high.tide", "+low.tide", "+src/a.c", "+src/b.c"],
    );
    check(
        "rm 'high tide.txt' low\\ tide.txt \"fog $'x\"",
        &["-high tide.txt", "-low tide.txt", "-fog $'x"],
    );
    check("# rm a.txt\n: # rm b.txt", &[]);
    check("[[ a.txt > b.txt ]] && echo newer", &[]);
    check("if (( n > 3 )); then echo many; fi", &[]);
    check("awk '$1 > 5 {print > \"x.txt\"}' in.txt", &[]);
    check("git rm -n pier.c; rsync --dry-run a b; rm --help", &[]);
}

#[test]
fn branches_that_need_not_have_run_are_left_out() {
    check("test -f a.txt || touch a.txt", &[]);
    check("[ -f a.txt ] && rm a.txt; ls", &[]);
    check("[ -f a.txt ] && rm a.txt", &["-a.txt"]);
    check("rm a.txt || true", &["-a.txt"]);
    check("make && cp quay.bin out.bin || echo failed", &[]);
    check("make && cp quay.bin out.bin || exit 1", &["+out.bin"]);
    check(
        "if grep -q x y; then rm a.txt; else rm b.txt; fi; rm c.txt",
        &["-c.txt"],
    );
    check(
        "case $1 in a) rm a.txt;; *) rm b.txt;; esac; rm c.txt",
        &["-c.txt"],
    );
    check("clean() { rm a.txt; }\nrm b.txt", &["-b.txt"]);
    check(
        "for i in 1 2 3; do echo $i >> count.txt; done",
        &["~count.txt"],
    );
    check(
        "for ((i=0; i<3; i++)); do touch a.txt; done; rm b.txt",
        &["+a.txt", "-b.txt"],
    );
    check(
        "while read -r f; do rm a.txt; done < list.txt > done.txt",
        &["~done.txt"],
    );
    check("names=(rm a.txt); { rm b.txt; }", &["-b.txt"]);
}

#[test]
fn commands_inside_commands() {
    check(
        "bash -lc 'rm pier.c && touch \"quay c.c\"'",
        &["-pier.c", "+quay c.c"],
    );
    check(
        "sudo -u lea env A=1 timeout -k 5 60 rm pier.c",
        &["-pier.c"],
    );
    check("LC_ALL=C nice -n 5 sed -i s/a/b/ pier.c", &["~pier.c"]);
    check(
        "timeout 60 bash -c \"cd sub && rm pier.c\"",
        &["-sub/pier.c"],
    );
    check(
        "ssh -p 22 lea@quay 'cd /srv && rm tide.db'",
        &["-lea@quay:/srv/tide.db"],
    );
    check(
        "docker exec -it web rm '/srv/a b.db'",
        &["-web:/srv/a b.db"],
    );
    check(
        "kubectl exec pod-1 -- touch /srv/x.db",
        &["+pod-1:/srv/x.db"],
    );
    check("/bin/rm pier.c; \\rm quay.c", &["-pier.c", "-quay.c"]);
    check("eval 'rm pier.c'", &["-pier.c"]);
    check(
        "bash <<'EOF'\nrm pier.c\nEOF\nrm quay.c",
        &["-pier.c", "-quay.c"],
    );
    check("python - <<'EOF'\nrm pier.c > x.txt\nEOF", &[]);
    check("bash -c $'rm pier.c\\nrm quay.c'", &["-pier.c", "-quay.c"]);
    check(
        "(cd sub && rm pier.c); rm quay.c",
        &["-sub/pier.c", "-quay.c"],
    );
    check(
        "cd sub; cd ..; rm ./pier.c ../quay.c",
        &["-pier.c", "-../quay.c"],
    );
    check_in(
        Some("/w/ferry/"),
        "rm pier.c ../quay.c /etc/x.conf",
        &["-/w/ferry/pier.c", "-/w/quay.c", "-/etc/x.conf"],
    );
}

#[test]
fn patches_in_commands() {
    let patch = "*** Begin Patch\n*** Update File: pier.c\n@@\n-a\n+b\n*** Add File: quay.c\n+x\n*** Delete File: old.c\n*** End Patch";
    let all = &["~pier.c", "+quay.c", "-old.c"];
    check(&format!("apply_patch <<'EOF'\n{patch}\nEOF"), all);
    check(&format!("apply_patch '{patch}'"), all);
    check(
        &format!("cd sub && apply_patch <<\"PATCH\"\n{patch}\nPATCH\n"),
        &["~sub/pier.c", "+sub/quay.c", "-sub/old.c"],
    );
    check(&format!("cat <<'EOF' | apply_patch\n{patch}\nEOF"), all);
    check(
        &format!("bash -lc 'apply_patch <<\"EOF\"\n{patch}\nEOF\n'"),
        all,
    );
    check(
        "git apply <<'EOF'\n--- a/pier.c\n+++ b/pier.c\n@@ -1 +1 @@\n--- /dev/null\n+++ b/quay.c\n--- a/old.c\n+++ /dev/null\nEOF",
        all,
    );
    check(
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: pier.c\n*** Move to: port.c\n@@\n*** End Patch\nEOF",
        &[">pier.c", "+port.c"],
    );
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(command in "(.|\\s|\u{a0}|\u{2028}){0,80}") {
        read(&command, None);
    }

    #[test]
    fn any_command_is_survived(command in "(rm |mv |sed -i |cd |ssh |bash -c |a|é|\\$|\\{|\\}|,|\\(|\\)|\\[\\[ |'|\"|`|\\\\|<<EOF|EOF|<|>|&|\\||;|\n| |1|=|#|for |do |done|case |in |if |fi|\\$\\(){0,60}") {
        read(&command, None);
        read(&command, Some("/w"));
    }
}
