//! The ready scenarios, and that one seed gives one run.

use enroute_netsim::{Report, Run, Scenario};
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;

fn scenario(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

fn report(name: &str) -> Report {
    let scenario = scenario(name);
    let seed = scenario.seed;
    let report = Run::new(scenario, seed).and_then(Run::run).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(report.is_good(), "{report}");
    report
}

#[test]
fn all_ready_scenarios_are_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the scenarios")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 7, "{names:?}");
    // January has a test of its own; the large ones are in a folder of their own.
    for name in names.iter().filter(|name| name.ends_with(".toml") && *name != "january.toml") {
        let report = report(name);
        assert!(report.total.received > 0 && !report.settles.is_empty(), "{report}");
    }
}

#[test]
fn january_gives_every_subscriber_its_own() {
    let report = report("january.toml");
    let received: Vec<u64> =
        report.clients.iter().map(|line| line.verdict.received).filter(|&count| count > 0).collect();
    assert_eq!(received, [31, 113, 521, 151, 5_144, 132]);
    assert_eq!(report.calm_publications, 29_230);
    assert_eq!(report.calm_crossings, report.calm_shortest);
    assert_eq!(report.links.iter().map(|line| line.tally.useless).sum::<u64>(), 0);
}

/// A trace that stays readable after the world has it.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn traced(seed: u64) -> (String, Vec<u8>) {
    let mut scenario = scenario("ring-with-chords.toml");
    let chaos = "do = 'chaos'\nactions = 200\n";
    let more =
        format!("topology = {{ brokers = 1 }}\n[[step]]\n{chaos}\n[[step]]\ndo = 'heal-all'\n[[step]]\ndo = 'settle'");
    scenario.steps.extend(Scenario::parse(&more).expect("good steps").steps);
    let mut run = Run::new(scenario, seed).expect("a good scenario");
    let kept = Kept::default();
    run.world_mut().set_trace(Box::new(kept.clone()));
    let report = run.run().expect("a good scenario");
    let json = serde_json::to_string(&report).expect("plain data");
    let trace = kept.0.borrow().clone();
    (json, trace)
}

#[test]
fn one_seed_gives_one_run_byte_for_byte() {
    let (report, trace) = traced(5);
    assert!(trace.len() > 100_000, "{} bytes of trace", trace.len());
    assert!((report.clone(), trace.clone()) == traced(5), "the second run with seed 5 differs");
    assert!((report, trace) != traced(6), "seed 6 gives the same run");
}

#[test]
fn what_a_scenario_names_must_be_there() {
    let run = |steps: &str| {
        let text = format!("topology = {{ shape = 'line', brokers = 2 }}\n{steps}");
        let scenario = Scenario::parse(&text).expect("good syntax");
        Run::new(scenario, 1).and_then(Run::run).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(run("[[step]]\ndo = 'settle'"), Ok(()));
    let wrong = [
        ("[[step]]\ndo = 'crash'\nbroker = 'x'", "there is no broker 'x'"),
        ("[[step]]\ndo = 'cut'\nlink = ['b00', 'b00']", "there is no link between 'b00' and 'b00'"),
        ("[[step]]\ndo = 'expect'\nclient = 'x'\nreceived = 1", "there is no client 'x'"),
        ("[[step]]\ndo = 'publish'\ncount = 1", "there is no client to publish"),
        ("[[client]]\nname = 'c'\nbroker = 'x'\n[[step]]\ndo = 'settle'", "there is no broker 'x'"),
    ];
    for (steps, message) in wrong {
        assert_eq!(run(steps), Err(message.to_owned()));
    }
}
