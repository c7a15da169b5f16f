use super::*;
use crate::report::Matching;

fn report(name: &str, microseconds: f64, events: usize) -> EngineReport {
    EngineReport {
        name: name.to_owned(),
        inserted: 10,
        insert_nanoseconds: 0.0,
        bytes_per_subscription: 0.0,
        matching: (events > 0).then_some(Matching {
            events,
            microseconds_minimum: microseconds,
            microseconds_median: 0.0,
            microseconds_percentile_50: 0.0,
            microseconds_percentile_99: 0.0,
            matches_per_event: 0.0,
            remove_nanoseconds: 0.0,
        }),
        slowest_insert_microseconds: None,
        slowest_remove_microseconds: None,
        times_faster_than: Default::default(),
        differences: Vec::new(),
    }
}

const ENGINES: &[(&str, &str)] = &[("quick", "red"), ("slow", "green"), ("heavy", "blue")];
const FIGURE: Figure = Figure {
    title: "Time",
    text: "Text.",
    ordinate: "microseconds",
    file: "time.svg",
    is_of_events: true,
    of: EngineReport::microseconds,
};

#[test]
fn a_table_says_where_there_was_no_time() {
    let points = [
        Point {
            abscissa: 1,
            runs: vec![
                vec![report("quick", 1.0, EVENTS), report("slow", 5.0, EVENTS), report("heavy", 9.0, EVENTS)],
                vec![report("quick", 3.0, EVENTS), report("slow", 7.0, EVENTS - 1), report("heavy", 0.0, 0)],
            ],
        },
        // An engine that was given up is not in the later runs.
        Point { abscissa: 2, runs: vec![vec![report("quick", 4.0, EVENTS), report("slow", 8.0, 1)]; 2] },
    ];
    let experiment = Experiment {
        engines: ENGINES,
        abscissa: "subscriptions",
        scale: Scale::Linear,
        points: Vec::new(),
        input: |_, _| unreachable!("nothing is measured"),
        runs: 2,
        figures: &[FIGURE],
    };
    let table = Table::new(&FIGURE, ENGINES, &points);
    let section = experiment.section(&FIGURE, &table);
    assert!(section.contains("| 1 | 2.00 | 6.00 \\* | given up |\n| 2 | 4.00 | 8.00 \\* | given up |\n"), "{section}");
    assert!(section.contains("mean of 2 runs") && section.contains("not all 200 events"), "{section}");
    let table = Table::new(&Figure { is_of_events: false, ..FIGURE }, &ENGINES[..2], &points);
    let section = experiment.section(&FIGURE, &table);
    assert!(section.contains("| 1 | 2.00 | 6.00 |\n") && !section.contains("given up"), "{section}");
}

#[test]
fn the_papers_parameters() {
    let first = Part::Ppsmtboad1.experiment(false);
    assert_eq!((first.points[0], first.points.last(), first.runs), ((50, 5_000), Some(&(500, 5_000)), 15));
    let second = Part::Ppsmtboad2.experiment(false);
    assert_eq!((second.points[0], second.points.last(), second.runs), ((1_000, 1_000), Some(&(100_000, 100_000)), 15));
    for (experiment, abscissa, predicates, names) in [(first, 70, 5..=15, 70), (second, 9, 5..=20, 600)] {
        let input = (experiment.input)(abscissa, 1);
        assert_eq!(input.attributes().len(), names);
        let lengths = input.subscriptions().take(500).map(|filter| filter.conjunctions()[0].constraints().len());
        let lengths: std::collections::BTreeSet<usize> = lengths.collect();
        assert!(lengths.iter().copied().eq(predicates), "{lengths:?}");
        assert!(input.events().take(20).all(|event| event.attribute_count() == 25));
    }
}
