//! `enroute config` and `enroute key`.

use crate::program::run;
use std::env::temp_dir;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// A directory that is gone after the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = temp_dir().join(format!("enroute-cli-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_example_passes_the_check() {
    let scratch = Scratch::new("example");
    let example = run(&["config", "example"], "");
    assert_eq!(example.code, Some(0));
    let file = scratch.write("enroute.toml", &example.stdout);
    let check = run(&["config", "check", &file], "");
    assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""));
}

#[test]
fn configuration_errors_name_the_place() {
    let scratch = Scratch::new("errors");
    let file = scratch.write("wrong.toml", "listen = []\n\nlisen = []\n");
    let check = run(&["config", "check", &file], "");
    assert_eq!((check.code, check.stdout.as_str()), (Some(1), ""));
    for part in ["error: ", "wrong.toml", "line 3", "lisen", "^", "hint: "] {
        assert!(check.stderr.contains(part), "{part}: {}", check.stderr);
    }
    let missing = run(&["config", "check", &scratch.path("none.toml")], "");
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("none.toml"), "{}", missing.stderr);
    // The daemon reads it the same way.
    let daemon = run(&["run", "--config", &file], "");
    assert_eq!((daemon.code, daemon.stderr), (Some(1), check.stderr));
}

#[test]
fn a_key_is_created_once() {
    let scratch = Scratch::new("key");
    let dir = scratch.path("data");
    let first = run(&["key", "--data-dir", &dir], "");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.contains("created"));
    let again = run(&["key", "--data-dir", &dir], "");
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    assert_eq!(first.stdout, again.stdout);
    let lines: Vec<_> = again.stdout.lines().collect();
    let [id, peer] = lines[..] else { panic!("{}", again.stdout) };
    let id = id.strip_prefix("id ").unwrap();
    let peer = peer.strip_prefix("peer ").unwrap();
    assert!(id.len() == 16 && id.chars().all(|digit| digit.is_ascii_hexdigit()), "{id}");
    assert!(peer.starts_with("12D3KooW"), "{peer}");
    let json = run(&["key", "--json", "--data-dir", &dir], "");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json, serde_json::json!({ "id": id, "peer": peer }));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let key = Path::new(&dir).join("identity.key");
        assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_damaged_key_is_reported() {
    let scratch = Scratch::new("damaged");
    scratch.write("identity.key", "nonsense");
    let ended = run(&["key", "--data-dir", &scratch.path("")], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("identity.key is damaged"), "{}", ended.stderr);
}
