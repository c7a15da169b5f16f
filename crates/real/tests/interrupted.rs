//! A run that is told to end leaves nothing behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const SCENARIO: &str = "[topology]\nshape = \"line\"\nbrokers = 2\n[[step]]\ndo = \"settle\"\n";

#[test]
fn a_run_that_is_told_to_end_takes_its_folder_with_it() {
    for signal in ["INT", "TERM"] {
        let folder = std::env::temp_dir().join(format!("netsim-real-test-{}-{signal}", std::process::id()));
        let (broker, scenario) = (folder.join("broker"), folder.join("scenario.toml"));
        // A broker that has it told to end, and never says anything.
        let script = format!("#!/bin/sh\necho >\"$TMPDIR/started\"\nkill -{signal} $PPID\nexec tail -f /dev/null\n");
        fs::create_dir(&folder).expect("a new folder");
        fs::write(&broker, script).and_then(|()| fs::write(&scenario, SCENARIO)).expect("files");
        fs::set_permissions(&broker, fs::Permissions::from_mode(0o755)).expect("a program");
        let run = Command::new(env!("CARGO_BIN_EXE_netsim-real"))
            .arg(&scenario)
            .arg("--enroute")
            .arg(&broker)
            .env("TMPDIR", &folder)
            .output()
            .expect("it starts");
        assert_eq!(run.status.code(), Some(2), "SIG{signal}: {}", String::from_utf8_lossy(&run.stderr));
        let left = fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert_eq!(left, ["broker", "scenario.toml", "started"], "SIG{signal}: {stderr}");
        fs::remove_dir_all(&folder).expect("nothing else holds it");
    }
}
