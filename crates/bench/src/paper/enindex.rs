//! The four questions of the Enindex paper: memory, construction, update, matching.
//!
//! The paper's parameters are not known to us. What is taken has small domains, since the K-index has to list all values
//! of a range.

use super::plot::Scale;
use super::{Experiment, Figure};
use crate::report::EngineReport;
use crate::workload::Input;
use crate::workload::zipf::ZipfAttributes;

const ENGINES: &[(&str, &str)] = &[
    ("k-index", "#e69f00"),
    ("be-tree", "#009e73"),
    ("opindex", "#cc79a7"),
    ("enindex-letter", "#56b4e9"),
    ("enindex", "#0072b2"),
    ("enroute", "#d55e00"),
];
const ATTRIBUTES: usize = 100;
const VALUES: usize = 10;

const MEMORY: Figure = Figure {
    title: "Enindex: memory",
    text: "100 attributes drawn by Zipf's law, ten values each; subscriptions of 3 to 7 predicates `=`, `<=` or `>=`, events\n\
           of 10 to 30 attributes. The paper's own parameters are not known to us. Bytes in use as the allocator counts them.\n\
           `enindex-letter` is the paper's algorithm to the letter, `enindex` finds each predicate's truth once;\n\
           `enroute` is the production engine.",
    ordinate: "mebibytes",
    file: "enindex-memory.svg",
    is_of_events: false,
    of: |engine| {
        let bytes = engine.bytes_per_subscription * engine.inserted as f64;
        engine.matching.as_ref().map(|_| bytes / f64::from(1 << 20))
    },
};

const CONSTRUCTION: Figure = Figure {
    title: "Enindex: construction",
    text: "The same input, inserted one subscription after the other. Thread time.",
    ordinate: "milliseconds",
    file: "enindex-construction.svg",
    is_of_events: false,
    of: |engine| {
        let nanoseconds = engine.insert_nanoseconds * engine.inserted as f64;
        engine.matching.as_ref().map(|_| nanoseconds / 1e6)
    },
};

const UPDATE: Figure = Figure {
    title: "Enindex: update",
    text: "The same input; an update is a removal from the full index, and an insertion as the mean of the construction.\n\
           Thread time.",
    ordinate: "microseconds for both",
    file: "enindex-update.svg",
    is_of_events: false,
    of: |engine| {
        let matching = engine.matching.as_ref()?;
        Some((matching.remove_nanoseconds + engine.insert_nanoseconds) / 1e3)
    },
};

const MATCHING: Figure = Figure {
    title: "Enindex: matching",
    text: "The same input.",
    ordinate: "microseconds an event",
    file: "enindex-matching.svg",
    is_of_events: true,
    of: EngineReport::microseconds,
};

pub(super) fn by_subscriptions(quick: bool) -> Experiment {
    let (runs, subscriptions): (u64, &[usize]) =
        if quick { (1, &[300, 1_000]) } else { (3, &[1_000, 5_000, 10_000, 25_000, 50_000, 100_000]) };
    Experiment {
        engines: ENGINES,
        abscissa: "subscriptions",
        scale: Scale::Logarithmic,
        points: subscriptions.iter().map(|count| (*count, *count)).collect(),
        input: |_, seed| Input::new(Box::new(ZipfAttributes::new(ATTRIBUTES, VALUES)), seed),
        runs,
        figures: &[MEMORY, CONSTRUCTION, UPDATE, MATCHING],
    }
}
