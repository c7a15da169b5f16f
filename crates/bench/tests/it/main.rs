//! Every engine on small inputs: what they find is compared, what is measured is there.

use enroute_bench::allocation::{CountingAllocator, live_bytes};
use enroute_bench::churn::{self, churn};
use enroute_bench::contender;
use enroute_bench::measure::{Plan, measure};
use enroute_bench::paper::{self, Part};
use enroute_bench::report::Report;
use enroute_bench::workload::Workload;
use std::path::Path;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn plan(engines: Vec<&'static str>) -> Plan {
    Plan {
        engines,
        subscriptions: 300,
        events: 60,
        checked: 60,
        rounds: 2,
        // No engine is short of time on a slow machine.
        time: Duration::from_secs(3_600),
        build_time: Duration::from_secs(3_600),
        slowest: true,
        seed: 1,
    }
}

fn assert_complete(report: &Report) {
    for engine in &report.engines {
        assert_eq!(engine.differences, Vec::<String>::new(), "{}", engine.name);
        assert_eq!(engine.inserted, report.subscriptions, "{}", engine.name);
        let matching = engine.matching.as_ref().expect("the build was not given up");
        assert_eq!(matching.events, report.events, "{}", engine.name);
        assert!(matching.microseconds_minimum > 0.0, "{}", engine.name);
        assert!(matching.microseconds_minimum <= matching.microseconds_median, "{}", engine.name);
        assert!(engine.slowest_insert_microseconds > Some(0.0), "{}", engine.name);
        assert!(engine.slowest_remove_microseconds > Some(0.0), "{}", engine.name);
    }
}

#[test]
fn all_engines_agree_on_all_workloads() {
    for workload in Workload::ALL {
        let report = measure(&workload.open(1), &plan(contender::names()));
        assert_complete(&report);
        let matches: Vec<f64> =
            report.engines.iter().filter_map(|engine| Some(engine.matching.as_ref()?.matches_per_event)).collect();
        assert!(matches.windows(2).all(|pair| pair[0] == pair[1]), "{}: {matches:?}", workload.name());
        assert!(workload == Workload::W1 || matches[0] > 0.0, "{}: nothing matches", workload.name());
    }
}

#[test]
fn only_what_the_peer_cannot_say_is_passed_over() {
    let passed_over = |engines, workload: Workload| measure(&workload.open(1), &plan(engines)).passed_over;
    assert_eq!(passed_over(vec![contender::SCAN], Workload::W1), 0);
    if contender::names().contains(&contender::A_TREE) {
        // Orders and prefixes of strings.
        assert!(passed_over(vec![contender::A_TREE], Workload::W1) > 300);
        assert_eq!(passed_over(vec![contender::A_TREE], Workload::W2), 0);
        assert_eq!(passed_over(vec![contender::A_TREE], Workload::W3), 0);
        assert_eq!(passed_over(vec![contender::A_TREE], Workload::W4), 0);
    }
}

#[test]
fn an_engine_that_takes_too_long_is_given_up() {
    let plan = Plan { subscriptions: 3_000, build_time: Duration::ZERO, ..plan(vec![contender::SCAN]) };
    let report = measure(&Workload::W2.open(1), &plan);
    let engine = report.engine(contender::SCAN).expect("it was planned");
    assert!(engine.matching.is_none() && engine.inserted > 0 && engine.inserted < 3_000);
}

#[test]
fn bytes_in_use_are_counted() {
    // Other tests allocate at the same time, but not as much.
    let before = live_bytes();
    let block = vec![0_u8; 1 << 30];
    let during = live_bytes();
    assert!(during - before > 1 << 29, "{before} before, {during} during");
    drop(block);
    assert!(during - live_bytes() > 1 << 29);
}

#[test]
fn the_papers_experiments_give_pages_whose_plots_exist() {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("paper");
    let pages = [
        (Part::Ppsmtboad1, "ppsmtboad-1.md", 1),
        (Part::Ppsmtboad2, "ppsmtboad-2.md", 1),
        (Part::Enindex, "enindex.md", 4),
    ];
    for (part, page, plots) in pages {
        let differences = paper::run(part, &output, true).expect("the directory can be written");
        assert_eq!(differences, Vec::<String>::new());
        let text = std::fs::read_to_string(output.join(page)).expect("the page was written");
        assert!(text.contains("Measured on"), "{text}");
        let named: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert_eq!(named.len(), plots, "{text}");
        for plot in named {
            let svg = std::fs::read_to_string(output.join(plot)).expect("the plot was written");
            assert!(svg.starts_with("<svg") && svg.contains(">enroute</text>") && !svg.contains("NaN"), "{plot}");
        }
    }
}

#[test]
fn engines_are_right_after_all_subscriptions_were_replaced() {
    for engine in contender::names().into_iter().filter(|name| *name != contender::A_TREE) {
        let plan = churn::Plan { engine, subscriptions: 300, turns: 2, events: 32, seed: 1 };
        let churn = churn(&Workload::W3.open(1), &plan);
        assert_eq!(churn.differences, 0, "{engine}");
        assert_eq!(churn.turns.len(), 3, "{engine}");
        assert!(churn.turns.iter().all(|turn| turn.microseconds > 0.0), "{engine}");
    }
}
