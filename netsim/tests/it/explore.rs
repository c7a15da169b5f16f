//! Random schedules, and the faults that they are made of.

use enroute_netsim::{Explore, Report, Run, Scenario, schedule};

fn explore(seeds: u64, first_seed: u64, brokers: usize) -> enroute_netsim::Explored {
    let explore = Explore { seeds, first_seed, brokers, failures: 1, shrink_runs: 0 };
    explore.run(|_, _| {}).expect("a good size")
}

#[test]
fn random_schedules_break_nothing() {
    for (brokers, first_seed) in [(1, 1), (3, 10), (10, 20)] {
        let explored = explore(6, first_seed, brokers);
        assert!(explored.is_good() && explored.seeds == 6, "{explored}");
    }
    let explored = explore(2, 30, 30);
    assert!(explored.is_good() && explored.total.received > 0, "{explored}");
}

#[test]
fn the_same_seeds_give_the_same_result() {
    let json = |explored| serde_json::to_string(&explored).expect("plain data");
    assert_eq!(json(explore(4, 7, 8)), json(explore(4, 7, 8)));
}

#[test]
fn a_schedule_runs_as_the_scenario_file_that_it_is_written_to() {
    let drawn = schedule(5, 8).expect("a good size");
    let read = Scenario::parse(&drawn.to_toml()).expect("what was written");
    let report = |scenario: Scenario| Run::new(scenario, 5).and_then(Run::run).expect("a good scenario");
    assert_eq!(report(drawn), report(read));
}

fn run(text: &str) -> Report {
    let network = "topology = { shape = 'line', brokers = 3 }\nlinks = { delay_us = [1_000, 1_000] }\n\
                   times = { grace_ms = 10_000 }\n\
                   [[client]]\nname = 'near'\nbroker = 'b00'\n\
                   [[client]]\nname = 'far'\nbroker = 'b02'\nsubscribe = { all = 'a IS NOT NULL' }\n\
                   [[step]]\ndo = 'publish'\nclient = 'near'\nevent = '{\"a\": 1}'\n[[step]]\ndo = 'settle'\n";
    let scenario = Scenario::parse(&format!("{network}{text}")).expect("a scenario");
    let report = Run::new(scenario, 1).and_then(Run::run).expect("a good scenario");
    assert!(report.is_good(), "{report}");
    report
}

fn steps(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("[[step]]\ndo = {line}\n")).collect()
}

const PUBLISH: &str = "'publish'\nclient = 'near'\nevent = '{\"a\": 2}'\ncount = 10";
const SETTLE: &str = "'settle'";

fn expect(received: u64) -> String {
    format!("'expect'\nclient = 'far'\nreceived = {received}")
}

#[test]
fn a_slow_link_brings_all_late_until_it_is_healed() {
    let slow = "'slow'\nlink = ['b00', 'b01']\nevents_us = 300_000";
    let heal = "'heal'\nlink = ['b00', 'b01']";
    let soon = "'wait'\nms = 200";
    run(&steps(&[
        slow,
        PUBLISH,
        soon,
        &expect(1),
        SETTLE,
        &expect(11),
        heal,
        PUBLISH,
        soon,
        &expect(11),
        SETTLE,
        &expect(21),
    ]));
}

#[test]
fn a_stalled_link_holds_all_back_and_loses_nothing() {
    let stall = "'stall'\nlink = ['b01', 'b02']\nms = 900";
    let report = run(&steps(&[stall, PUBLISH, SETTLE, &expect(11)]));
    let took = report.settles[1].took_us;
    assert!((900_000..1_000_000).contains(&took), "settled after {took} us");
}

#[test]
fn a_flapping_link_comes_back_and_stops_when_it_is_healed() {
    let flap = "'flap'\nlink = ['b01', 'b02']\ntimes = 3\ndown_ms = 50\nup_ms = 2_000";
    let report = run(&steps(&[flap, SETTLE, PUBLISH, SETTLE, &expect(11)]));
    assert!(report.settles[1].took_us > 4_000_000, "{report}");
    let heal = "'heal'\nlink = ['b01', 'b02']";
    let report = run(&steps(&[flap, "'wait'\nms = 10", heal, SETTLE, PUBLISH, SETTLE, &expect(11)]));
    assert!(report.settles[1].took_us < 4_000_000, "{report}");
}

#[test]
fn a_client_that_is_away_gets_nothing_and_has_its_subscriptions_when_it_is_back() {
    let (away, back) = ("'disconnect'\nclient = 'far'", "'connect'\nclient = 'far'");
    run(&steps(&[away, SETTLE, PUBLISH, SETTLE, &expect(1), back, SETTLE, PUBLISH, SETTLE, &expect(11)]));
}

#[test]
fn a_stalled_client_drops_its_oldest_and_concerns_nobody_else() {
    let stall = "'stall-client'\nclient = 'far'\nms = 1_000\nqueue = 4";
    let report = run(&steps(&[stall, PUBLISH, SETTLE, &expect(11), PUBLISH, SETTLE, &expect(21)]));
    let dropped: Vec<u64> = report.clients.iter().map(|client| client.dropped).collect();
    assert_eq!(dropped, [0, 6]);
}

#[test]
fn faults_that_do_not_apply_do_nothing() {
    let nothing = [
        "'heal'\nlink = ['b00', 'b01']",
        "'restart'\nbroker = 'b01'",
        "'unsubscribe'\nclient = 'far'\nname = 'other'",
        "'unadvertise'\nclient = 'far'\nname = 'other'",
        "'connect'\nclient = 'far'",
        "'dial-again'\nlink = ['b01', 'b00']",
    ];
    run(&steps(&[&nothing[..], &[SETTLE, PUBLISH, SETTLE]].concat()));
}
